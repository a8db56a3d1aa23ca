/* method_sparseloco.c: SparseLoCo (Sarfi, Therien, Lidin, Belilovsky, arXiv 2508.15706, algorithm 1). Each worker i, after H
 * inner steps from theta:
 *     a_i = beta e_i + (theta - theta_i)        what it has to say, with what it has not said before
 *     Delta^_i = Q(top-k of a_i)                the largest of every 4096, two bits each: codec topk32, topk64, topk128
 *     e_i <- a_i - Delta^_i
 *     theta <- theta - alpha mean_i Delta^_i    outer sgd; beta stands in for outer momentum
 * That is DiLoCo with --codec topk64 --error-feedback 0.95 --outer sgd --outer-lr 1 --mean-codec fp32, but for what is sent: the
 * paper gathers the sparse contributions at every worker, (k - 1) of them, and no mean ever travels. Everything kept (codec
 * fp32) and alpha = 1 is FedAvg.
 *
 * beta: --error-feedback, 0.95 where it is 0. alpha: --outer-lr. A codec that is neither a top-k one nor fp32 becomes
 * topk64. */
#include "lab/averaging.h"
#include "lab/synchronous.h"

#include <stdio.h>
#include <string.h>

#define USUAL_BETA 0.95

static void configure(struct lab_config *c) {
	struct run_config *run = &c->run;
	if (strncmp(run->codec, "topk", 4) != 0 && strcmp(run->codec, "fp32") != 0)
		snprintf(run->codec, sizeof run->codec, "topk64");
	if (run->error_feedback == 0)
		run->error_feedback = USUAL_BETA;
	snprintf(run->mean_codec, sizeof run->mean_codec, "fp32");
	snprintf(run->outer, sizeof run->outer, "sgd");
}

static enum rv_err sparseloco_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	RV_TRY(synchronous_round(r, out, et));
	out->bytes = (uint64_t)(out->participants - 1) * averaging_payload_bytes(r);
	return RV_OK;
}

const struct lab_method lab_method_sparseloco = {
	.name = "sparseloco",
	.averages = true,
	.synchronous = true,
	.configure = configure,
	.n_replicas = averaging_replicas,
	.round = sparseloco_round,
	.theta = averaging_theta,
	.state_hash = averaging_state_hash,
	.payload_bytes = averaging_payload_bytes,
};
