/* method_diloco.c: k replicas, H inner steps each, one averaged outer gradient, one outer step (arXiv 2311.08105, algorithm
 * 1): the run that workers do over the network, without the network.
 *
 * With outer sgd and outer-lr 1, or outer average, this is FedAvg (arXiv 1602.05629); with outer adam, yogi, adagrad
 * FedOpt (2003.00295); one worker with sgd is Lookahead (1907.08610), with nesterov SNOO (2510.15830). */
#include "lab/averaging.h"

#include "base/clock.h"
#include "worker/train/metrics.h"

#include <stdlib.h>
#include <string.h>

static int n_replicas(int workers) {
	return workers;
}

/* A worker that missed the round: as a real one that comes late (run.late). `old`: theta before the outer step. */
static void adopt_late(struct lab_run *r, int i, const float *old) {
	if (strcmp(r->cfg.run.late, "keep") == 0) {
		replica_shift_theta(r->replicas[i], old, r->global.theta);
		r->kept_tokens[i] += r->sums[i].tokens;
	} else {
		replica_set_theta(r->replicas[i], r->global.theta);
		r->kept_tokens[i] = 0;
	}
}

static enum rv_err step_and_adopt(struct lab_run *r, const bool *takes_part, struct rv_errtext *et) {
	size_t bytes = r->global.cfg.n * sizeof(float);
	float *old = r->cfg.drop_sync > 0 ? malloc(bytes) : NULL;
	if (r->cfg.drop_sync > 0 && !old)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep %zu parameters over an outer step", r->global.cfg.n);
	if (old)
		memcpy(old, r->global.theta, bytes);
	struct rv_hash digest = global_digest(&r->global, r->global.round, r->reduced);
	enum rv_err e = global_apply(&r->global, r->reduced, &digest, et);
	for (int i = 0; e == RV_OK && i < r->n_replicas; i++) {
		if (takes_part[i]) {
			replica_set_theta(r->replicas[i], r->global.theta);
			r->kept_tokens[i] = 0;
		} else {
			adopt_late(r, i, old);
		}
	}
	free(old);
	return e;
}

static enum rv_err diloco_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	bool takes_part[LAB_MAX_WORKERS];
	RV_TRY(averaging_train(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	out->participants = averaging_participants(&r->cfg, r->rounds_done, takes_part);
	RV_TRY(averaging_reduce(r, takes_part, et));
	RV_TRY(step_and_adopt(r, takes_part, et));
	out->reduce_us = rv_clock_monotonic_us() - started_us;
	out->bytes = metrics_allreduce_bytes(averaging_payload_bytes(r), (uint32_t)out->participants);
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
	.averages = true,
	.n_replicas = n_replicas,
	.round = diloco_round,
	.theta = theta,
	.state_hash = state_hash,
	.payload_bytes = averaging_payload_bytes,
};
