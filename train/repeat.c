/* repeat.c: see repeat.h. */
#include "train/repeat.h"

#include "base/assert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void repeat_begin(const struct replica *r, struct repeat_job *job, const struct reading *text) {
	memcpy(job->state.theta, job->before, replica_n_params(r) * sizeof(float));
	job->state.global_step = job->round * job->steps;
	job->state.next = text->first;
	job->state.has_reading = true;
	job->state.reading = *text;
	job->done = 0;
	job->sane = inner_state_is_sane(r, job->state.inner);
	job->begun = true;
}

/* Checks the number of updates, which its author has chosen: optimizers count on from there. */
static enum rv_err check_updates(const struct repeat_job *job, struct rv_errtext *et) {
	uint64_t updates;
	memcpy(&updates, job->state.inner, sizeof updates);
	if (updates < (uint64_t)INT64_MAX - job->steps)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "an inner state after %" PRIu64 " updates", updates);
}

static bool goes_on(const struct repeat_job *job) {
	return job->done < job->steps && !atomic_load(&job->dropped);
}

enum rv_err repeat_steps(struct replica *r, struct repeat_job *job, bool (*stops)(void *ctx, uint64_t made), void *ctx,
						 struct rv_errtext *et) {
	struct step_stats stats;
	enum rv_err e = RV_OK;
	RV_TRY(check_updates(job, et));
	inner_exchange(r, &job->state);
	for (uint64_t made = 0; goes_on(job) && e == RV_OK && !stops(ctx, made); made++) {
		e = replica_step(r, &stats, et);
		job->done += e == RV_OK;
	}
	inner_exchange(r, &job->state);
	return e == RV_E_RANGE && (job->done == 0 || job->sane) ? RV_E_UNSUPPORTED : e;
}

/* ---- how far it is ---- */

struct distance {
	double off, all; /* sums of squares: of the difference, of what was computed here */
};

static void add(struct distance *d, const float *theirs, const float *ours, size_t n) {
	for (size_t i = 0; i < n; i++) {
		const double off = (double)theirs[i] - (double)ours[i];
		d->off += off * off;
		d->all += (double)ours[i] * (double)ours[i];
	}
}

static double distance_of(const struct distance *d) {
	const double far = d->off == 0 ? 0 : sqrt(d->off / d->all);
	return far <= REPEAT_FAR ? far : REPEAT_FAR; /* NaN and infinite, too */
}

/* Compares chunk `i` of what the author sent with what this training sends. `room`: two chunks of
 * floats, then an encoded one. Returns false if one of them is no contribution. */
static bool compare_chunk(const struct global_config *g, const struct repeat_job *job, const struct chunking *chunks,
						  uint32_t i, float *room, struct distance *d) {
	const struct codec *sent = global_sent(g);
	const size_t n = chunking_len(chunks, i), at = global_round_chunk_at(g, job->round, i);
	float *theirs = room, *ours = room + chunks->chunk_elems;
	uint8_t *encoded = (uint8_t *)(ours + chunks->chunk_elems);
	for (size_t k = 0; k < n; k++)
		ours[k] = job->before[at + k] - job->state.theta[at + k];
	if (sent->encode(sent, ours, n, encoded, NULL) != RV_OK || sent->decode(sent, encoded, n, ours, NULL) != RV_OK ||
		sent->decode(sent, job->encoded + chunking_offset_bytes(chunks, sent, i), n, theirs, NULL) != RV_OK)
		return false;
	add(d, theirs, ours, n);
	return true;
}

static enum rv_err compare_contribution(const struct global_config *g, struct repeat_job *job, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(g, job->round);
	const struct codec *sent = global_sent(g);
	float *room = malloc(2 * chunks.chunk_elems * sizeof *room + sent->encoded_bytes(sent, chunks.chunk_elems));
	struct distance d = {0};
	bool both = room != NULL;
	if (!room)
		return rv_fail(et, RV_E_NOMEM, "no memory for a chunk of a contribution");
	for (uint32_t i = 0; i < chunks.n_chunks && both; i++)
		both = compare_chunk(g, job, &chunks, i, room, &d);
	free(room);
	job->contribution = both ? distance_of(&d) : REPEAT_FAR;
	return RV_OK;
}

/* Compares bytes [at, at + n) of the inner states. d: of m, of v. Returns false if the numbers of
 * updates differ. */
static bool compare_piece(size_t n_params, const uint8_t *ours, const uint8_t *theirs, size_t at, size_t n,
						  struct distance d[2]) {
	const size_t second = INNER_HEAD_BYTES + n_params * sizeof(float), end = at + n;
	const size_t from = at > INNER_HEAD_BYTES ? at : INNER_HEAD_BYTES;
	const size_t cut = second < from ? from : second > end ? end : second;
	if (at == 0 && memcmp(ours, theirs, INNER_HEAD_BYTES) != 0)
		return false;
	add(&d[0], (const float *)(const void *)(theirs + (from - at)), (const float *)(const void *)(ours + from),
		(cut - from) / sizeof(float));
	add(&d[1], (const float *)(const void *)(theirs + (cut - at)), (const float *)(const void *)(ours + cut),
		(end - cut) / sizeof(float));
	return true;
}

static double compare_inner(size_t n, const struct repeat_job *job) {
	struct distance d[2] = {{0}};
	for (int i = 0; i < job->n_pieces; i++)
		if (!compare_piece(n, job->state.inner, job->ends + (size_t)i * INNER_PIECE_BYTES,
						   (size_t)job->pieces[i] * INNER_PIECE_BYTES, inner_piece_bytes(n, job->pieces[i]), d))
			return REPEAT_FAR;
	return fmax(distance_of(&d[0]), distance_of(&d[1]));
}

enum rv_err repeat_judge(const struct global_config *g, struct repeat_job *job, struct rv_errtext *et) {
	RV_ASSERT(job->done == job->steps);
	job->inner = compare_inner(g->n, job);
	return compare_contribution(g, job, et);
}
