/* eager.c: see eager.h. */
#include "outer/eager.h"

#include "base/assert.h"
#include "outer/elementwise.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum rv_err eager_init(struct eager *e, const struct run_config *run, const struct global_config *g,
					   const float *theta0, struct rv_errtext *et) {
	*e = (struct eager){.share = 0};
	if (!run_config_is_late(run))
		return RV_OK;
	if (run->updates == UPDATES_EAGER) {
		e->share = (float)run->eager_share;
		e->n_states = g->optimizer->n_states;
	}
	/* run_config_check_updates: eager needs a linear optimizer, which has at most one state. */
	RV_ASSERT(1 + e->n_states <= EAGER_MAX_VECTORS);
	bool ok = (e->start = malloc(g->n * sizeof(float))) && (e->scratch = malloc(g->chunks.chunk_elems * sizeof(float)));
	for (int k = 0; ok && k < e->n_states; k++)
		ok = (e->state[k] = calloc(g->n, sizeof(float))) != NULL;
	if (!ok) {
		eager_release(e);
		return rv_fail(et, RV_E_NOMEM, "no memory for a start of one's own (%zu parameters)", g->n);
	}
	memcpy(e->start, theta0, g->n * sizeof(float));
	return RV_OK;
}

void eager_release(struct eager *e) {
	free(e->start);
	free(e->scratch);
	for (int k = 0; k < GLOBAL_MAX_STATES; k++)
		free(e->state[k]);
	*e = (struct eager){.share = 0};
}

bool eager_is_on(const struct eager *e) {
	return e->start != NULL;
}

const float *eager_reference(const struct eager *e, const struct global_state *g) {
	return e->start ? e->start : g->theta;
}

struct global_state eager_view(const struct eager *e, const struct global_state *g) {
	struct global_state view = *g;
	view.theta = (float *)(uintptr_t)eager_reference(e, g);
	return view;
}

RV_ELEMENTWISE_BODY own_part_body(float share, const float *start, const float *local, float *out, size_t n) {
	for (size_t i = 0; i < n; i++)
		out[i] = share * (start[i] - local[i]);
}

RV_ELEMENTWISE(own_part, (float share, const float *start, const float *local, float *out, size_t n),
			   (share, start, local, out, n))

void eager_turn(struct eager *e, const struct global_state *g, const float *theta_local) {
	const struct global_config *c = &g->cfg;
	if (!e->start)
		return;
	RV_ASSERT(e->share >= 0 && e->share <= 1);
	RV_ASSERT(e->share == 0 || e->n_states == c->optimizer->n_states);
	for (uint32_t k = 0; k < c->chunks.n_chunks; k++) {
		const size_t at = (size_t)k * c->chunks.chunk_elems, n = chunking_len(&c->chunks, k);
		float *state[GLOBAL_MAX_STATES] = {0};
		for (int s = 0; s < e->n_states; s++)
			state[s] = e->state[s] + at;
		own_part(e->share, e->start + at, theta_local + at, e->scratch, n);
		memcpy(e->start + at, g->theta + at, n * sizeof(float));
		if (e->share > 0)
			c->optimizer->step(e->start + at, state, e->scratch, n, &c->params);
	}
}

void eager_shift(struct eager *e, size_t at, size_t n, const float *from, const float *to) {
	for (size_t i = 0; e->start && i < n; i++)
		e->start[at + i] += to[i] - from[i];
}

void eager_restart(struct eager *e, const struct global_config *g, const float *theta) {
	if (!e->start)
		return;
	memcpy(e->start, theta, g->n * sizeof(float));
	for (int k = 0; k < e->n_states; k++)
		memset(e->state[k], 0, g->n * sizeof(float));
}

int eager_vectors(const struct eager *e, float *out[EAGER_MAX_VECTORS]) {
	int n = 0;
	if (e->start)
		out[n++] = e->start;
	for (int k = 0; k < e->n_states; k++)
		out[n++] = e->state[k];
	return n;
}
