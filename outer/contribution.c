/* contribution.c: see contribution.h. */
#include "outer/contribution.h"

#include "base/assert.h"
#include "base/slow_lines.h"
#include "outer/elementwise.h"
#include "outer/feedback.h"
#include "outer/recode.h"

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
	c->bytes = malloc(g->chunks.chunk_elems * sizeof *c->scratch);
	if (!c->residual || !c->next || !c->scratch || !c->bytes) {
		contribution_release(c);
		return rv_fail(et, RV_E_NOMEM, "no memory for what a contribution of %zu parameters is made with", g->n);
	}
	return RV_OK;
}

void contribution_release(struct contribution *c) {
	free(c->residual);
	free(c->next);
	free(c->scratch);
	free(c->bytes);
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

RV_ELEMENTWISE_BODY add_lost_body(const float *encoded, const float *sent, float *left, size_t n) {
	for (size_t i = 0; i < n; i++)
		left[i] = left[i] + (encoded[i] - sent[i]);
}

RV_ELEMENTWISE(add_lost, (const float *encoded, const float *sent, float *left, size_t n), (encoded, sent, left, n))

/* Adds to `left` (n) what chunk i lost when it was sent: all of it, or what another codec left.
 * Overwrites `sent` (n). */
static void add_loss(struct contribution *c, const struct global_config *g, const uint8_t *chunk, size_t n,
					 const struct codec *as, float *sent, float *left) {
	const struct codec *codec = global_sent(g);
	enum rv_err e;
	if (as) {
		e = recode_chunk(codec, as, chunk, n, c->bytes, c->scratch, NULL);
		RV_ASSERT(e == RV_OK); /* this participant encoded it */
		e = as->decode(as, c->bytes, n, sent, NULL);
	} else {
		e = codec->decode(codec, chunk, n, c->scratch, NULL);
		memset(sent, 0, n * sizeof *sent);
	}
	RV_ASSERT(e == RV_OK);
	add_lost(c->scratch, sent, left, n);
}

/* Completes the remainder of chunk i of the round by what its form lost. */
static void complete_remainder(struct contribution *c, const struct global_config *g, uint64_t round, uint32_t i,
							   const uint8_t *encoded, const struct contribution_form *form) {
	const struct chunking chunks = global_round_chunks(g, round);
	const size_t at = global_round_chunk_at(g, round, i), n = chunking_len(&chunks, i);
	const uint8_t *chunk = encoded + chunking_offset_bytes(&chunks, global_sent(g), i);
	const bool sent = slow_contributes(form->part, form->member, round, i);
	if (sent && form->codec == 0)
		return;
	add_loss(c, g, chunk, n, sent ? global_sent_as(g, form->codec) : NULL, c->residual + at, c->next + at);
}

void contribution_commit(struct contribution *c, const struct global_config *g, uint64_t round, const uint8_t *encoded,
						 const struct contribution_form *form) {
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
			complete_remainder(c, g, round, i, encoded, form);
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
