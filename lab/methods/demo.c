/* demo.c: DeMo, decoupled momentum (Peng, Quesnelle, Kingma, arXiv 2411.19870, algorithm 1; its
 * authors' program where the paper leaves details open). Every inner step t, with gradients g_i of
 * the workers' own data at the same theta:
 *     m_i <- beta m_i + lr(t) g_i                      momentum, each worker's own, never averaged
 *     q_i  = the 32 largest of DCT(m_i) in each tile   (lab/methods/dct_tiles.h: at most 64 x 64)
 *     m_i <- m_i - IDCT(q_i)                           takes out what is sent; the rest grows
 *     Q    = for each coefficient the mean over the workers that sent it
 *     theta <- (1 - lr(t) weight-decay) theta - lr(t) sign(IDCT(Q))
 * Only matrices decay, as everywhere here. beta: --error-feedback, 0.999 if it is 0. There is no
 * inner optimizer, and no clipping: only directions are left of the gradients. H is how many such
 * steps a line of the record stands for.
 *
 * Each of k workers sends in each step, to all others: up to 32 coefficients of every tile, with 12
 * bits for the place and 32 for the value. */
#include "lab/methods/averaging.h"
#include "lab/methods/dct_tiles.h"
#include "lab/methods/methods.h"

#include "base/clock.h"
#include "outer/topk_select.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 32, INDEX_BITS = 12, BYTE = 8 };

#define USUAL_BETA 0.999

static const char *const of_inner_optimizers[] = {"beta1", "beta2", "eps", "clip", "muon-momentum", NULL};
static const struct method_idle idle_inner = {of_inner_optimizers, "an inner optimizer, and method demo has none"};

static void configure(struct lab_config *c) {
	if (c->run.error_feedback == 0)
		c->run.error_feedback = USUAL_BETA;
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	if (c->inner == INNER_adamw)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "method demo has no inner optimizer: leave out inner = %s, or --method diloco",
				   inner_facts[c->inner].name);
}

/* ---- memory ---- */

/* Returns the number of extra vectors: for each worker m_i, and q_i in the places of the tiles. */
static int n_extra(int workers, int n_states) {
	(void)n_states;
	return 2 * workers;
}

static float *momentum_of(struct lab_run *r, int i) {
	return r->extra[2 * i];
}

static float *sent_of(struct lab_run *r, int i) {
	return r->extra[2 * i + 1];
}

static enum rv_err open_tiles(struct lab_run *r, struct rv_errtext *et) {
	r->own = calloc(1, sizeof(struct dct_tiles));
	return r->own ? dct_tiles_init(r->own, &replica_model(r->replicas[0])->layout, et)
				  : rv_fail(et, RV_E_NOMEM, "no memory for tiles");
}

static void close_tiles(struct lab_run *r) {
	if (r->own)
		dct_tiles_release(r->own);
	free(r->own);
}

static size_t kept_of(const struct dct_tile *tile) {
	const size_t elems = (size_t)tile->h * (size_t)tile->w;
	return elems < KEPT ? elems : KEPT;
}

static uint64_t payload_bytes(const struct lab_run *r) {
	const struct dct_tiles *t = r->own;
	uint64_t bytes = 0;
	for (size_t i = 0; i < t->n; i++)
		bytes += (kept_of(&t->tiles[i]) * INDEX_BITS + BYTE - 1) / BYTE + kept_of(&t->tiles[i]) * sizeof(float);
	return bytes;
}

/* ---- a worker's part of a step ---- */

/* Moves the momentum's largest coefficients in the tile to `sent`. */
static void extract(const struct dct_tiles *t, const struct dct_tile *tile, float *momentum, float *sent) {
	float x[DCT_TILE_MAX], all[DCT_TILE_MAX], largest[DCT_TILE_MAX] = {0}, taken[DCT_TILE_MAX];
	uint16_t index[KEPT];
	const size_t elems = (size_t)tile->h * (size_t)tile->w;
	dct_tile_get(tile, momentum, x);
	dct_forward(t, tile, x, all);
	const size_t n = topk_select(all, elems, kept_of(tile), 1, index);
	for (size_t i = 0; i < n; i++)
		largest[index[i]] = all[index[i]];
	dct_inverse(t, tile, largest, taken);
	for (size_t i = 0; i < elems; i++)
		x[i] -= taken[i];
	dct_tile_put(tile, momentum, x);
	dct_tile_put(tile, sent, largest);
}

static enum rv_err worker_step(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et) {
	const struct dct_tiles *t = r->own;
	const float beta = (float)r->cfg.run.error_feedback;
	float *momentum = momentum_of(r, i), *gradient = sent_of(r, i);
	RV_TRY(replica_gradient(r->replicas[i], gradient, out, et));
	for (size_t k = 0; k < r->global.cfg.n; k++)
		momentum[k] = beta * momentum[k] + out->lr * gradient[k];
	for (size_t k = 0; k < t->n; k++)
		extract(t, &t->tiles[k], momentum, gradient);
	return RV_OK;
}

static void train(void *ctx, int i) {
	struct lab_run *r = ctx;
	lab_run_inner_steps(r, i, r->goals[i], worker_step);
}

/* ---- all workers together ---- */

/* Computes for each coefficient the mean over those that sent it. */
static void mean_of_sent(struct lab_run *r, const struct dct_tile *tile, float *mean) {
	const size_t elems = (size_t)tile->h * (size_t)tile->w;
	float one[DCT_TILE_MAX];
	int senders[DCT_TILE_MAX] = {0};
	for (size_t k = 0; k < elems; k++)
		mean[k] = 0;
	for (int i = 0; i < r->n_replicas; i++) {
		dct_tile_get(tile, sent_of(r, i), one);
		for (size_t k = 0; k < elems; k++) {
			mean[k] += one[k];
			senders[k] += one[k] != 0;
		}
	}
	for (size_t k = 0; k < elems; k++)
		mean[k] = senders[k] > 0 ? mean[k] / (float)senders[k] : 0;
}

static float sign_of(float x) {
	return (float)((x > 0) - (x < 0));
}

static void move_theta(struct lab_run *r, float lr) {
	const struct dct_tiles *t = r->own;
	for (size_t i = 0; i < t->n; i++) {
		float mean[DCT_TILE_MAX], direction[DCT_TILE_MAX], theta[DCT_TILE_MAX];
		const struct dct_tile *tile = &t->tiles[i];
		const float keep = tile->decay ? 1 - lr * (float)r->cfg.run.weight_decay : 1;
		mean_of_sent(r, tile, mean);
		dct_inverse(t, tile, mean, direction);
		dct_tile_get(tile, r->global.theta, theta);
		for (size_t k = 0; k < (size_t)tile->h * (size_t)tile->w; k++)
			theta[k] = keep * theta[k] - lr * sign_of(direction[k]);
		dct_tile_put(tile, r->global.theta, theta);
	}
	for (int i = 0; i < r->n_replicas; i++)
		replica_set_theta(r->replicas[i], r->global.theta);
}

/* Returns the steps of the slowest worker: the others have done as many, or one more before they
 * were stopped. */
static uint64_t steps_done(const struct lab_run *r) {
	uint64_t least = replica_global_step(r->replicas[0]);
	for (int i = 1; i < r->n_replicas; i++)
		least = replica_global_step(r->replicas[i]) < least ? replica_global_step(r->replicas[i]) : least;
	return least;
}

static enum rv_err demo_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	const uint64_t h = (uint64_t)r->cfg.run.steps_per_round, goal = (r->rounds_done + 1) * h;
	for (uint64_t step = steps_done(r); step < goal; step++) {
		for (int i = 0; i < r->n_replicas; i++)
			r->goals[i] = step + 1;
		RV_TRY(lab_run_for_all(r, train, et));
		const int64_t started_us = rv_clock_monotonic_us();
		move_theta(r, replica_learning_rate(r->replicas[0], step));
		out->reduce_us += rv_clock_monotonic_us() - started_us;
	}
	out->participants = r->n_replicas;
	out->bytes = h * (uint64_t)(r->n_replicas - 1) * payload_bytes(r);
	return RV_OK;
}

static struct rv_hash state_hash(struct lab_run *r) {
	const size_t bytes = r->global.cfg.n * sizeof(float);
	struct rv_hasher h = rv_hasher_of("rivulet demo");
	rv_hash_u64(&h, r->rounds_done);
	rv_hash_update(&h, r->global.theta, bytes);
	for (int i = 0; i < r->n_replicas; i++)
		rv_hash_update(&h, momentum_of(r, i), bytes);
	return rv_hash_final(&h);
}

const struct lab_method lab_method_demo = {
	.name = "demo",
	.averages = true,
	.codec = "dct32",
	.outer = "sign",
	.idle = {&idle_outer_loop, &idle_inner},
	.no_prox = true,
	.configure = configure,
	.check = check,
	.n_replicas = averaging_replicas,
	.n_extra = n_extra,
	.open = open_tiles,
	.close = close_tiles,
	.round = demo_round,
	.theta = averaging_theta,
	.state_hash = state_hash,
	.payload_bytes = payload_bytes,
};
