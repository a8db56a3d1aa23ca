/* overlapped.c: see overlapped.h. */
#include "lab/overlapped.h"

#include "base/assert.h"
#include "base/clock.h"
#include "lab/averaging.h"

#include <stdlib.h>
#include <string.h>

/* Places in lab_run.extra. */
enum { MEAN, RESULT, WORKERS };

static int per_worker(const struct lab_run *r) {
	return 2 + r->global.cfg.optimizer->n_states;
}

static float *own_before(struct lab_run *r, int i) {
	return r->extra[WORKERS + i * per_worker(r)];
}

static float *weights_of(struct lab_run *r, int i) {
	return r->extra[WORKERS + i * per_worker(r) + 1];
}

static float *const *states_of(struct lab_run *r, int i) {
	return &r->extra[WORKERS + i * per_worker(r) + 2];
}

int overlapped_extra(int workers, int n_states) {
	return WORKERS + workers * (2 + n_states);
}

void overlapped_start(struct lab_run *r) {
	const struct global_config *g = &r->global.cfg;
	memcpy(r->extra[RESULT], r->global.theta, g->n * sizeof(float));
	for (int i = 0; i < r->n_replicas; i++) {
		memcpy(weights_of(r, i), r->global.theta, g->n * sizeof(float));
		if (g->optimizer->start)
			g->optimizer->start(states_of(r, i), g->n, &g->params);
	}
}

const float *overlapped_reference(struct lab_run *r, int i) {
	return weights_of(r, i);
}

/* d (n) = what worker i steps with now; own(t-1) becomes own(t). */
static void take_own(struct lab_run *r, enum overlapped_step how, int i, float *d) {
	const float *theta = weights_of(r, i), *local = replica_theta(r->replicas[i]), *mean = r->extra[MEAN];
	float *before = own_before(r, i), k = (float)r->n_replicas;
	for (size_t at = 0; at < r->global.cfg.n; at++) {
		float own = theta[at] - local[at];
		d[at] = how == OVERLAPPED_DELAYED ? mean[at] : mean[at] + (own - before[at]) / k;
		before[at] = own;
	}
}

/* The all-reduce of this round's outer gradients, whose result is used in the next. */
static enum rv_err average_now(struct lab_run *r, float *mean, struct rv_errtext *et) {
	const struct chunking *c = &r->global.cfg.chunks;
	bool all[LAB_MAX_WORKERS];
	for (int i = 0; i < r->n_replicas; i++)
		all[i] = true;
	RV_TRY(averaging_reduce(r, all, et));
	for (uint32_t k = 0; k < c->n_chunks; k++)
		RV_TRY(r->global.cfg.codec->decode(r->reduced + chunking_offset_bytes(c, r->global.cfg.codec, k),
										   chunking_len(c, k), mean + k * c->chunk_elems, et));
	return RV_OK;
}

static void write_result(struct lab_run *r) {
	float *result = r->extra[RESULT];
	for (size_t at = 0; at < r->global.cfg.n; at++) {
		float sum = 0;
		for (int i = 0; i < r->n_replicas; i++)
			sum += weights_of(r, i)[at];
		result[at] = sum / (float)r->n_replicas;
	}
}

static enum rv_err step_all(struct lab_run *r, enum overlapped_step how, struct rv_errtext *et) {
	const struct global_config *g = &r->global.cfg;
	float *mean = malloc(g->n * sizeof *mean), *d = malloc(g->n * sizeof *d);
	enum rv_err e = mean && d ? average_now(r, mean, et)
							  : rv_fail(et, RV_E_NOMEM, "no memory for two vectors of %zu parameters", g->n);
	for (int i = 0; e == RV_OK && i < r->n_replicas; i++) {
		take_own(r, how, i, d);
		g->optimizer->step(weights_of(r, i), states_of(r, i), d, g->n, &g->params);
		replica_set_theta(r->replicas[i], weights_of(r, i));
	}
	if (e == RV_OK) {
		memcpy(r->extra[MEAN], mean, g->n * sizeof *mean);
		write_result(r);
	}
	free(mean);
	free(d);
	return e;
}

enum rv_err overlapped_round(struct lab_run *r, enum overlapped_step how, struct lab_round *out,
							 struct rv_errtext *et) {
	RV_ASSERT(r->n_extra == overlapped_extra(r->n_replicas, r->global.cfg.optimizer->n_states));
	RV_TRY(averaging_train_to(r, (r->rounds_done + 1) * (uint64_t)r->cfg.run.steps_per_round, et));
	RV_TRY(averaging_encode(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	RV_TRY(step_all(r, how, et));
	out->participants = r->n_replicas;
	out->reduce_us = rv_clock_monotonic_us() - started_us;
	out->bytes = averaging_bytes(r, r->n_replicas);
	return RV_OK;
}

const float *overlapped_theta(struct lab_run *r) {
	return r->extra[RESULT];
}

struct rv_hash overlapped_state_hash(struct lab_run *r) {
	struct rv_hasher h;
	struct rv_hash out;
	rv_hash_init_domain(&h, "rivulet overlapped");
	rv_hash_u64(&h, r->rounds_done);
	for (int k = 0; k < r->n_extra; k++)
		rv_hash_update(&h, r->extra[k], r->global.cfg.n * sizeof(float));
	rv_hash_final(&h, &out);
	return out;
}
