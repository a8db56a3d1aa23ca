/* method_sparseloco.c: SparseLoCo (Sarfi, Therien, Lidin, Belilovsky, arXiv 2508.15706, algorithm 1). Each worker i,
 * after H inner steps from theta:
 *     a_i = beta e_i + (theta - theta_i)        what it has to say, with what it has not said before
 *     Delta^_i = Q(top-k of a_i)                the largest of every 4096, two bits each: codec topk32, topk64, topk128
 *     e_i <- a_i - Delta^_i
 *     theta <- theta - alpha mean_i Delta^_i    outer sgd; beta stands in for outer momentum
 * That is DiLoCo with --codec topk64 --error-feedback 0.95 --outer sgd --outer-lr 1 --mean-codec fp32, but for what is
 * sent: the paper gathers the sparse contributions at every worker, (k - 1) of them, and no mean ever travels.
 * Everything kept (codec fp32) and alpha = 1 is FedAvg.
 *
 * beta: --error-feedback, 0.95 where it is 0. alpha: --outer-lr. codec: topk64 where none was chosen (int8). */
#include "lab/averaging.h"
#include "lab/preset.h"
#include "lab/synchronous.h"

#include <stdio.h>
#include <string.h>

#define USUAL_BETA 0.95

static const char unchosen_codec[] = "int8";

static bool is_sparse(const char *codec) {
	return strncmp(codec, "topk", 4) == 0;
}

static void configure(struct lab_config *c) {
	struct run_config *run = &c->run;
	if (strcmp(run->codec, unchosen_codec) == 0)
		snprintf(run->codec, sizeof run->codec, "topk64");
	if (run->error_feedback == 0)
		run->error_feedback = USUAL_BETA;
	snprintf(run->mean_codec, sizeof run->mean_codec, "fp32");
	preset_outer(c, "sgd");
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	if (!is_sparse(c->codec) && strcmp(c->codec, "fp32") != 0 && strcmp(c->codec, unchosen_codec) != 0)
		return rv_fail(
			et, RV_E_INVALID,
			"method sparseloco with codec = %s: it is of topk32, topk64, topk128, topk64_fp32, and fp32 to keep "
			"everything; for error feedback with %s use --method diloco --error-feedback 0.95",
			c->codec, c->codec);
	struct run_config usual = *c;
	snprintf(usual.mean_codec, sizeof usual.mean_codec, "auto");
	if (strcmp(c->mean_codec, "fp32") != 0 && strcmp(run_config_mean_codec(c), run_config_mean_codec(&usual)) != 0)
		return rv_fail(et, RV_E_INVALID,
					   "method sparseloco with mean-codec = %s: no mean is sent; for means use --method diloco",
					   c->mean_codec);
	return preset_check_outer("sparseloco", c, "sgd", et);
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
	.check = check,
	.n_replicas = averaging_replicas,
	.round = sparseloco_round,
	.theta = averaging_theta,
	.state_hash = averaging_state_hash,
	.payload_bytes = averaging_payload_bytes,
};
