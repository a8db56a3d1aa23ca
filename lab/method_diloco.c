/* method_diloco.c: k replicas, H inner steps each, one averaged outer gradient, one outer step: the run that workers do
 * over the network, without the network. */
#include "lab/lab_run.h"
#include "lab/replica_spread.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "base/weights.h"
#include "worker/train/metrics.h"

#include <stdlib.h>

static int n_replicas(int workers) {
	return workers;
}

static enum rv_err one_step(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et) {
	return replica_step_over(r->replicas[i], NULL, 0, out, et);
}

static void train_and_encode(void *ctx, int i) {
	struct lab_run *r = ctx;
	lab_run_inner_steps(r, i, one_step);
	if (r->faults[i] == RV_OK)
		r->faults[i] =
			global_encode_delta(&r->global, replica_theta(r->replicas[i]), r->encoded[i], &r->fault_texts[i]);
}

static void tick(void *ctx) {
	struct lab_run *r = ctx;
	if (r->tick)
		r->tick(r->tick_ctx);
}

/* What the owners of an all-reduce do, chunk by chunk. */
static enum rv_err reduce(struct lab_run *r, struct rv_errtext *et) {
	const struct chunking *c = &r->global.cfg.chunks;
	const struct codec *codec = r->global.cfg.codec;
	uint64_t tokens[LAB_MAX_WORKERS];
	uint32_t weights[LAB_MAX_WORKERS];
	for (int i = 0; i < r->n_replicas; i++)
		tokens[i] = r->sums[i].tokens;
	rv_weights(tokens, r->n_replicas, r->cfg.run.weight_by_tokens, weights);
	float *scratch = malloc(c->chunk_elems * sizeof *scratch);
	if (!scratch)
		return rv_fail(et, RV_E_NOMEM, "no memory to average a chunk of %zu values", c->chunk_elems);
	enum rv_err e = RV_OK;
	for (uint32_t k = 0; e == RV_OK && k < c->n_chunks; k++) {
		const uint8_t *in[LAB_MAX_WORKERS];
		size_t at = chunking_offset_bytes(c, codec, k);
		for (int i = 0; i < r->n_replicas; i++)
			in[i] = r->encoded[i] + at;
		e = codec_reduce_mean(codec, in, weights, r->n_replicas, chunking_len(c, k), scratch, r->reduced + at, et);
	}
	free(scratch);
	return e;
}

static uint64_t payload_bytes(const struct lab_run *r) {
	return chunking_total_bytes(&r->global.cfg.chunks, r->global.cfg.codec);
}

static enum rv_err diloco_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	const struct parallel_loop loop = {
		.n = r->n_replicas, .threads = r->cfg.parallel, .fn = train_and_encode, .tick = tick, .ctx = r};
	RV_TRY(parallel_run(&loop, et));
	RV_TRY(lab_run_first_fault(r, et));
	RV_TRY(replica_spread_measure(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	RV_TRY(reduce(r, et));
	struct rv_hash digest = global_digest(&r->global, r->global.round, r->reduced);
	RV_TRY(global_apply(&r->global, r->reduced, &digest, et));
	for (int i = 0; i < r->n_replicas; i++)
		replica_set_theta(r->replicas[i], r->global.theta);
	out->reduce_us = rv_clock_monotonic_us() - started_us;
	out->bytes = metrics_allreduce_bytes(payload_bytes(r), (uint32_t)r->n_replicas);
	return RV_OK;
}

static const float *theta(struct lab_run *r) {
	return r->global.theta;
}

static struct rv_hash state_hash(struct lab_run *r) {
	return global_full_hash(&r->global);
}

const struct lab_method lab_method_diloco = {
	.name = "diloco",
	.n_replicas = n_replicas,
	.round = diloco_round,
	.theta = theta,
	.state_hash = state_hash,
	.payload_bytes = payload_bytes,
};
