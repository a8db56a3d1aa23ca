/* mean_residual.c: see mean_residual.h. */
#include "outer/mean_residual.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 4 };

enum rv_err mean_residual_init(struct mean_residual *m, const struct run_config *run, const struct global_config *g,
							   struct rv_errtext *et) {
	*m = (struct mean_residual){.beta = (float)run->mean_feedback};
	if (m->beta <= 0)
		return RV_OK;
	m->kept = calloc(g->n, sizeof *m->kept); /* zero pages until they are touched */
	m->left = calloc(g->n, sizeof *m->left);
	m->holds = calloc(g->chunks.n_chunks, sizeof *m->holds);
	m->made = calloc(g->chunks.n_chunks, sizeof *m->made);
	if (m->kept && m->left && m->holds && m->made)
		return RV_OK;
	mean_residual_release(m);
	return rv_fail(et, RV_E_NOMEM, "no memory for what encoding the means of %zu parameters loses", g->n);
}

void mean_residual_release(struct mean_residual *m) {
	free(m->kept);
	free(m->left);
	free(m->holds);
	free(m->made);
	*m = (struct mean_residual){.beta = 0};
}

bool mean_residual_is_on(const struct mean_residual *m) {
	return m->kept != NULL;
}

/* ---- chunks of a round ---- */

/* Chunk i of a round's vector. */
struct place {
	uint32_t chunk; /* of the whole vector */
	size_t at, n;   /* its values there */
};

static struct place place_of(const struct global_config *g, uint64_t round, uint32_t i) {
	const uint32_t chunk = fragment_chunk(&g->fragments, fragment_of_round(&g->fragments, round), i);
	const struct chunking part = global_round_chunks(g, round);
	const struct place p = {.chunk = chunk, .at = chunk * g->chunks.chunk_elems, .n = chunking_len(&part, i)};
	RV_ASSERT(p.chunk < g->chunks.n_chunks && p.n <= g->n - p.at);
	return p;
}

static uint32_t chunks_of(const struct global_config *g, uint64_t round) {
	return global_round_chunks(g, round).n_chunks;
}

void mean_residual_drop(struct mean_residual *m, const struct global_config *g) {
	if (mean_residual_is_on(m))
		memset(m->made, 0, g->chunks.n_chunks * sizeof *m->made);
	m->attempt = 0;
}

void mean_residual_begin(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t attempt) {
	RV_ASSERT(attempt > 0);
	const bool under_way = m->attempt == attempt && m->round == round;
	if (!mean_residual_is_on(m) || under_way)
		return;
	if (m->attempt > 0 && RV_BUG("means-of-a-failed-attempt"))
		mean_residual_commit(m, g, m->round, m->attempt);
	mean_residual_drop(m, g);
	m->round = round;
	m->attempt = attempt;
}

const struct feedback *mean_residual_of(struct mean_residual *m, const struct global_config *g, uint32_t i,
										struct feedback *room) {
	if (!mean_residual_is_on(m))
		return NULL;
	RV_ASSERT(m->attempt > 0);
	const struct place p = place_of(g, m->round, i);
	m->made[p.chunk] = true;
	*room =
		(struct feedback){.beta = m->beta, .kept = m->holds[p.chunk] ? m->kept + p.at : NULL, .left = m->left + p.at};
	return room;
}

void mean_residual_commit(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t attempt) {
	if (!mean_residual_is_on(m))
		return;
	const bool known = attempt > 0 && m->attempt == attempt && m->round == round;
	m->from[fragment_of_round(&g->fragments, round)] = known ? attempt : 0;
	for (uint32_t i = 0; i < chunks_of(g, round); i++) {
		const struct place p = place_of(g, round, i);
		m->holds[p.chunk] = known && (m->made[p.chunk] || (m->holds[p.chunk] && RV_BUG("keep-means-of-moved-chunks")));
		if (m->holds[p.chunk] && m->made[p.chunk])
			memcpy(m->kept + p.at, m->left + p.at, p.n * sizeof *m->kept);
	}
	mean_residual_drop(m, g);
}

void mean_residual_prove(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t former) {
	const bool proven = former > 0 && m->from[fragment_of_round(&g->fragments, round)] == former;
	for (uint32_t i = 0; mean_residual_is_on(m) && !proven && i < chunks_of(g, round) && !RV_BUG("believe-a-vote"); i++)
		m->holds[place_of(g, round, i).chunk] = false;
}

void mean_residual_lose(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t i) {
	if (mean_residual_is_on(m))
		m->holds[place_of(g, round, i).chunk] = false;
}

void mean_residual_forget(struct mean_residual *m, const struct global_config *g) {
	if (!mean_residual_is_on(m))
		return;
	memset(m->holds, 0, g->chunks.n_chunks * sizeof *m->holds);
	mean_residual_drop(m, g);
}

bool mean_residual_holds(const struct mean_residual *m, const struct global_config *g, uint64_t round) {
	for (uint32_t i = 0; mean_residual_is_on(m) && i < chunks_of(g, round); i++)
		if (m->holds[place_of(g, round, i).chunk])
			return true;
	return false;
}

/* ---- as bytes ---- */

size_t mean_residual_saved_bytes(const struct mean_residual *m, const struct global_config *g) {
	size_t bytes = MEAN_RESIDUAL_HEAD_BYTES;
	for (uint32_t i = 0; i < chunks_of(g, m->round); i++) {
		const struct place p = place_of(g, m->round, i);
		bytes += m->made[p.chunk] ? NUMBER_BYTES + p.n * sizeof(float) : 0;
	}
	return bytes;
}

size_t mean_residual_max_bytes(const struct global_config *g) {
	return MEAN_RESIDUAL_HEAD_BYTES + g->chunks.n_chunks * NUMBER_BYTES + g->n * sizeof(float);
}

void mean_residual_save(const struct mean_residual *m, const struct global_config *g, uint8_t *out) {
	struct rv_writer w = rv_writer_of(out, mean_residual_saved_bytes(m, g));
	const uint32_t n = chunks_of(g, m->round);
	uint32_t made = 0;
	RV_ASSERT(mean_residual_is_on(m) && m->attempt > 0);
	for (uint32_t i = 0; i < n; i++)
		made += m->made[place_of(g, m->round, i).chunk];
	rv_write_u64(&w, m->round);
	rv_write_u32(&w, m->attempt);
	rv_write_u32(&w, made);
	for (uint32_t i = 0; i < n; i++)
		if (m->made[place_of(g, m->round, i).chunk])
			rv_write_u32(&w, i);
	for (uint32_t i = 0; i < n; i++) {
		const struct place p = place_of(g, m->round, i);
		if (m->made[p.chunk])
			rv_write_bytes(&w, m->left + p.at, p.n * sizeof(float));
	}
	RV_ASSERT(!w.failed && w.at == w.end);
}

/* Marks the chunks as made, and sets *values to how many values follow. */
static enum rv_err read_numbers(struct mean_residual *m, const struct global_config *g, uint32_t made,
								struct rv_reader *in, size_t *values, struct rv_errtext *et) {
	const uint32_t n = chunks_of(g, m->round);
	*values = 0;
	if (made > n)
		return rv_fail(et, RV_E_CORRUPT, "residual of %u chunks, the round has %u", made, n);
	for (uint32_t k = 0, least = 0; k < made; k++) {
		const uint32_t i = rv_read_u32(in);
		if (i < least || i >= n)
			return rv_fail(et, RV_E_CORRUPT, "residual of chunk %u after %u chunks: the round has %u, ascending", i, k,
						   n);
		least = i + 1;
		m->made[place_of(g, m->round, i).chunk] = true;
		*values += place_of(g, m->round, i).n;
	}
	return RV_OK;
}

static enum rv_err read_values(struct mean_residual *m, const struct global_config *g, struct rv_reader *in,
							   struct rv_errtext *et) {
	for (uint32_t i = 0; i < chunks_of(g, m->round); i++) {
		const struct place p = place_of(g, m->round, i);
		if (!m->made[p.chunk])
			continue;
		rv_read_copy(in, m->left + p.at, p.n * sizeof(float));
		for (size_t k = 0; k < p.n; k++)
			if (!isfinite(m->left[p.at + k]))
				return rv_fail(et, RV_E_CORRUPT, "residual of chunk %u: value %zu is not finite", i, k);
	}
	return RV_OK;
}

static enum rv_err load(struct mean_residual *m, const struct global_config *g, struct rv_reader *in,
						struct rv_errtext *et) {
	m->round = rv_read_u64(in);
	m->attempt = rv_read_u32(in);
	const uint32_t made = rv_read_u32(in);
	size_t values = 0;
	if (in->failed || m->attempt == 0)
		return rv_fail(et, RV_E_CORRUPT, "residual of no attempt");
	RV_TRY(read_numbers(m, g, made, in, &values, et));
	if (in->failed || rv_reader_left(in) != values * sizeof(float))
		return rv_fail(et, RV_E_CORRUPT, "residual of %zu values in %zu bytes", values, rv_reader_left(in));
	return read_values(m, g, in, et);
}

enum rv_err mean_residual_load(struct mean_residual *m, const struct global_config *g, const uint8_t *in, size_t n,
							   struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(in, n);
	RV_ASSERT(mean_residual_is_on(m));
	mean_residual_drop(m, g);
	enum rv_err e = load(m, g, &r, et);
	if (e != RV_OK)
		mean_residual_drop(m, g);
	return e;
}
