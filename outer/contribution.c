/* contribution.c: see contribution.h. */
#include "outer/contribution.h"

#include "base/assert.h"
#include "outer/elementwise.h"
#include "outer/feedback.h"

#include <stdlib.h>
#include <string.h>

enum rv_err contribution_init(struct contribution *c, const struct run_config *run, const struct global_config *g,
							  struct rv_errtext *et) {
	*c = (struct contribution){.beta = (float)run->error_feedback};
	if (c->beta <= 0)
		return RV_OK;
	c->residual = calloc(g->n, sizeof *c->residual);
	c->next = calloc(g->n, sizeof *c->next);
	c->scratch = malloc(g->chunks.chunk_elems * sizeof *c->scratch);
	if (!c->residual || !c->next || !c->scratch) {
		contribution_release(c);
		return rv_fail(et, RV_E_NOMEM, "no memory for what a contribution of %zu parameters is made with", g->n);
	}
	return RV_OK;
}

void contribution_release(struct contribution *c) {
	free(c->residual);
	free(c->next);
	free(c->scratch);
	*c = (struct contribution){.beta = 0};
}

bool contribution_is_plain(const struct contribution *c) {
	return !c->residual;
}

RV_ELEMENTWISE_BODY gradient_body(const float *theta, const float *local, float *a, size_t n) {
	for (size_t i = 0; i < n; i++)
		a[i] = theta[i] - local[i];
}

RV_ELEMENTWISE(gradient, (const float *theta, const float *local, float *a, size_t n), (theta, local, a, n))

/* Encodes the n values at `at` of the vector; the remainder goes to c->next. */
static enum rv_err encode_chunk(struct contribution *c, const struct global_state *g, const float *theta_local,
								size_t at, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct feedback kept = {.beta = c->beta, .kept = c->residual + at, .left = c->next + at};
	RV_ASSERT(n <= g->cfg.chunks.chunk_elems && n <= g->cfg.n - at); /* the sizes of scratch and residual */
	gradient(g->theta + at, theta_local + at, c->scratch, n);
	return feedback_encode(global_sent(&g->cfg), c->scratch, n, &kept, out, et);
}

enum rv_err contribution_encode(struct contribution *c, const struct global_state *g, uint64_t round,
								const float *theta_local, uint8_t *out, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(&g->cfg, round);
	RV_ASSERT(round == g->round);
	if (contribution_is_plain(c))
		return global_encode_delta(g, theta_local, out, et);
	c->has_next = false;
	for (uint32_t i = 0; i < chunks.n_chunks; i++) {
		const size_t at = global_round_chunk_at(&g->cfg, round, i), n = chunking_len(&chunks, i);
		uint8_t *chunk = out + chunking_offset_bytes(&chunks, global_sent(&g->cfg), i);
		if (encode_chunk(c, g, theta_local, at, n, chunk, et) != RV_OK)
			return global_diverged(g, theta_local, at, n, et);
	}
	c->has_next = true;
	c->encoded = round;
	return RV_OK;
}

void contribution_commit(struct contribution *c, const struct global_config *g, uint64_t round) {
	const struct chunking chunks = global_round_chunks(g, round);
	if (!c->residual)
		return;
	RV_ASSERT(!c->has_next || c->encoded <= round); /* rounds are encoded before they are committed, in order */
	const bool known = c->has_next && c->encoded == round;
	c->has_next = false;
	for (uint32_t i = 0; i < chunks.n_chunks; i++) {
		const size_t at = global_round_chunk_at(g, round, i);
		const size_t bytes = chunking_len(&chunks, i) * sizeof(float);
		if (known)
			memcpy(c->residual + at, c->next + at, bytes);
		else
			memset(c->residual + at, 0, bytes);
	}
}

void contribution_forget(struct contribution *c, const struct global_config *g) {
	if (c->residual)
		memset(c->residual, 0, g->n * sizeof *c->residual);
	c->has_next = false;
}
