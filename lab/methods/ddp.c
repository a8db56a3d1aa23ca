/* ddp.c: data-parallel training, the baseline: every step is one step on the mean gradient of k
 * workers' batches. One replica computes what k would; a formula gives the bytes they would send:
 * each step an all-reduce of fp32 gradients. */
#include "lab/methods/averaging.h"
#include "lab/methods/methods.h"
#include "lab/run/lab_run.h"

#include "train/metrics.h"

static int n_replicas(int workers) {
	(void)workers;
	return 1;
}

static enum rv_err one_step(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et) {
	uint32_t shards[LAB_MAX_WORKERS];
	for (int k = 0; k < r->cfg.workers; k++)
		shards[k] = (uint32_t)(k % r->cfg.run.data_shards);
	return replica_step_over(r->replicas[i], shards, r->cfg.workers, out, et);
}

static void train(void *ctx, int i) {
	struct lab_run *r = ctx;
	lab_run_inner_steps(r, i, (r->rounds_done + 1) * (uint64_t)r->cfg.run.steps_per_round, one_step);
}

static uint64_t payload_bytes(const struct lab_run *r) {
	return replica_n_params(r->replicas[0]) * sizeof(float);
}

static enum rv_err ddp_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	RV_TRY(lab_run_for_all(r, train, et));
	out->bytes =
		(uint64_t)r->cfg.run.steps_per_round * metrics_allreduce_bytes(payload_bytes(r), (uint32_t)r->cfg.workers);
	return RV_OK;
}

static const float *theta(struct lab_run *r) {
	return replica_theta(r->replicas[0]);
}

static struct rv_hash state_hash(struct lab_run *r) {
	struct rv_hasher h = rv_hasher_of("rivulet parameters");
	rv_hash_update(&h, replica_theta(r->replicas[0]), payload_bytes(r));
	return rv_hash_final(&h);
}

const struct lab_method lab_method_ddp = {
	.name = "ddp",
	.codec = "fp32",
	.outer = "none",
	.idle = {&idle_outer_loop, &idle_feedback},
	.no_prox = true,
	.n_replicas = n_replicas,
	.round = ddp_round,
	.theta = theta,
	.state_hash = state_hash,
	.payload_bytes = payload_bytes,
};
