/* score.c: see score.h. */
#include "train/score.h"

#include "base/assert.h"
#include "base/slow_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The losses of sequences, one by one, with two weights. */
struct losses {
	double ahead[SCORE_MAX_SEQUENCES], behind[SCORE_MAX_SEQUENCES];
};

static enum rv_err losses_with(struct replica *r, const float *weights, const struct score_text *text,
							   double out[SCORE_MAX_SEQUENCES], struct rv_errtext *et) {
	RV_ASSERT(text->n >= 1 && text->n <= SCORE_MAX_SEQUENCES);
	return replica_loss_on(r, weights, text->reading, text->next, text->n, out, et);
}

static struct score fall_of(const struct losses *l, uint64_t sequences) {
	const double n = (double)sequences;
	double sum = 0, squares = 0;
	for (uint64_t i = 0; i < sequences; i++)
		sum += l->behind[i] - l->ahead[i];
	for (uint64_t i = 0; i < sequences; i++) {
		const double off = l->behind[i] - l->ahead[i] - sum / n;
		squares += off * off;
	}
	return (struct score){.gain = sum / n, .error = n > 1 ? sqrt(squares / (n - 1) / n) : INFINITY};
}

enum rv_err score_measure(struct replica *r, const float *ahead, const float *behind, const struct score_text *text,
						  struct score *out, struct rv_errtext *et) {
	struct losses l;
	RV_TRY(losses_with(r, ahead, text, l.ahead, et));
	RV_TRY(losses_with(r, behind, text, l.behind, et));
	*out = fall_of(&l, text->n);
	return RV_OK;
}

static size_t chunk_bytes(const struct codec *sent, const struct chunking *chunks, uint32_t chunk) {
	return sent->encoded_bytes(sent, chunking_len(chunks, chunk));
}

size_t score_sent_bytes(const struct global_config *g, const struct score_sent *s) {
	const struct chunking chunks = global_round_chunks(g, s->round);
	const struct codec *sent = global_sent_as(g, s->codec);
	size_t bytes = 0;
	for (uint32_t i = 0; i < chunks.n_chunks; i++)
		if (s->whole || slow_contributes(s->part, s->member, s->round, i))
			bytes += chunk_bytes(sent, &chunks, i);
	return bytes;
}

static enum rv_err move_chunks(const struct global_config *g, const struct score_sent *s, float share, float *moved,
							   float *values, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(g, s->round);
	const struct codec *sent = global_sent_as(g, s->codec);
	const uint8_t *at = s->encoded;
	for (uint32_t i = 0; i < chunks.n_chunks; i++) {
		const bool counts = slow_contributes(s->part, s->member, s->round, i);
		const uint8_t *chunk = at;
		at += counts || s->whole ? chunk_bytes(sent, &chunks, i) : 0;
		if (!counts)
			continue;
		const size_t n = chunking_len(&chunks, i);
		float *to = moved + global_round_chunk_at(g, s->round, i);
		RV_TRY(sent->decode(sent, chunk, n, values, et));
		for (size_t k = 0; k < n; k++)
			to[k] -= share * values[k];
	}
	return RV_OK;
}

enum rv_err score_move(const struct global_config *g, const struct score_sent *s, float share, const float *theta,
					   float *moved, struct rv_errtext *et) {
	float *values = malloc(g->chunks.chunk_elems * sizeof *values);
	if (!values)
		return rv_fail(et, RV_E_NOMEM, "no memory for a chunk of a contribution");
	memcpy(moved, theta, g->n * sizeof *moved);
	const enum rv_err e = move_chunks(g, s, share, moved, values, et);
	free(values);
	return e;
}

/* Returns the length of the step from theta to moved. */
static double length_of(const float *theta, const float *moved, size_t n) {
	double squares = 0;
	for (size_t i = 0; i < n; i++) {
		const double x = (double)theta[i] - (double)moved[i];
		squares += x * x;
	}
	return sqrt(squares);
}

/* Measures a step along a contribution, of this length, on the first n sequences of `text`; length
 * 0: the share's, which *length becomes. `moved`: memory for weights, for one after the other. */
static enum rv_err gain_of(struct replica *r, const struct global_config *g, const float *theta,
						   const struct score_sent *sent, float share, const struct reading *text, uint64_t n,
						   double *length, float *moved, struct score *out, struct rv_errtext *et) {
	struct losses l;
	const struct score_text part = {.reading = text, .next = text->first, .n = n};
	RV_TRY(score_move(g, sent, share, theta, moved, et));
	const double own = length_of(theta, moved, g->n);
	if (*length == 0)
		*length = own;
	else if (own > 0)
		share = (float)((double)share * *length / own);
	RV_TRY(score_move(g, sent, share, theta, moved, et));
	RV_TRY(losses_with(r, moved, &part, l.ahead, et));
	RV_TRY(score_move(g, sent, -share, theta, moved, et));
	RV_TRY(losses_with(r, moved, &part, l.behind, et));
	*out = fall_of(&l, n);
	return RV_OK;
}

static uint64_t most(uint64_t n) {
	return n < SCORE_MAX_SEQUENCES ? n : SCORE_MAX_SEQUENCES;
}

enum rv_err score_run(struct replica *r, const struct global_config *g, const float *theta, struct score_job *job,
					  struct rv_errtext *et) {
	const uint64_t n = most(reading_end(&job->their_text) - job->their_text.first);
	const uint64_t own = reading_end(&job->own_text) - job->own_text.first, as_many = own < n ? own : n;
	double length = 0;
	float *moved = malloc(g->n * sizeof *moved);
	if (!moved)
		return rv_fail(et, RV_E_NOMEM, "no memory for weights that a contribution has moved");
	enum rv_err e =
		gain_of(r, g, theta, &job->own, job->share, &job->own_text, as_many, &length, moved, &job->own_found, et);
	if (e == RV_OK)
		e = gain_of(r, g, theta, &job->theirs, job->share, &job->their_text, n, &length, moved, &job->theirs_found, et);
	free(moved);
	return e;
}
