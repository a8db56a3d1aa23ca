/* method_papa.c: PAPA (Jolicoeur-Martineau et al., Population Parameter Averaging, arXiv 2304.03094): every H steps each
 * replica is pulled towards the mean of all: theta_i <- mix theta_i + (1 - mix) mean. mix = 0 is FedAvg, mix = 1 leaves
 * the replicas alone. What is exchanged are outer gradients against the last mean, so that every codec serves. */
#include "lab/averaging.h"

#include "base/clock.h"
#include "lab/pull.h"
#include "worker/train/metrics.h"

#include <stdio.h>

static int n_replicas(int workers) {
	return workers;
}

static void configure(struct lab_config *c) {
	snprintf(c->run.outer, sizeof c->run.outer, "average");
}

static enum rv_err papa_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	bool takes_part[LAB_MAX_WORKERS];
	RV_TRY(averaging_train(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	out->participants = averaging_participants(&r->cfg, r->rounds_done, takes_part);
	RV_TRY(averaging_reduce(r, takes_part, et));
	struct rv_hash digest = global_digest(&r->global, r->global.round, r->reduced);
	RV_TRY(global_apply(&r->global, r->reduced, &digest, et));
	for (int i = 0; i < r->n_replicas; i++)
		if (takes_part[i])
			RV_TRY(pull_replica(r->replicas[i], r->global.theta, 1 - (float)r->cfg.mix, et));
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

const struct lab_method lab_method_papa = {
	.name = "papa",
	.averages = true,
	.configure = configure,
	.n_replicas = n_replicas,
	.round = papa_round,
	.theta = theta,
	.state_hash = state_hash,
	.payload_bytes = averaging_payload_bytes,
};
