/* sparseloco.c: SparseLoCo (Sarfi, Therien, Lidin, Belilovsky, arXiv 2508.15706, algorithm 1). Each
 * worker i, after H inner steps from theta:
 *     a_i = beta e_i + (theta - theta_i)        outer gradient and the remainder of earlier rounds
 *     Delta^_i = Q(top-k of a_i)                largest of every 4096, two bits each: topk codecs
 *     e_i <- a_i - Delta^_i
 *     theta <- theta - alpha mean_i Delta^_i    outer sgd; beta stands in for outer momentum
 * That is DiLoCo with --codec topk64 --error-feedback 0.95 --outer sgd --outer-lr 1 --mean-codec
 * fp32, except for the bytes: the paper gathers the sparse contributions at every worker, (k - 1)
 * of them, and no mean ever travels. If all values are kept (codec fp32) and alpha = 1 it is
 * FedAvg.
 *
 * beta: --error-feedback, 0.95 if it is 0. alpha: --outer-lr. codec: topk64 if none was chosen
 * (int8). */
#include "lab/methods/averaging.h"
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

#define USUAL_BETA 0.95

enum { UNCHOSEN_CODEC = CODEC_int8 };

static bool is_sparse(int codec) {
	return codec_facts[codec].facts & CODEC_SPARSE;
}

static void configure(struct lab_config *c) {
	struct run_config *run = &c->run;
	if (run->codec == UNCHOSEN_CODEC)
		run->codec = CODEC_topk64;
	if (run->error_feedback == 0)
		run->error_feedback = USUAL_BETA;
	run->mean_codec = MEAN_CODEC_fp32;
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	if (!is_sparse(c->codec) && c->codec != CODEC_fp32 && c->codec != UNCHOSEN_CODEC)
		return rv_fail(et, RV_E_INVALID,
					   "method sparseloco with codec = %s: it is of topk32, topk64, topk128, and fp32 to keep "
					   "everything; for error feedback with %s use --method diloco --error-feedback 0.95",
					   codec_facts[c->codec].name, codec_facts[c->codec].name);
	struct run_config usual = *c;
	usual.mean_codec = MEAN_CODEC_auto;
	if (c->mean_codec != MEAN_CODEC_fp32 && run_config_mean_codec(c) != run_config_mean_codec(&usual))
		return rv_fail(et, RV_E_INVALID,
					   "method sparseloco with mean-codec = %s: no mean is sent; for means use --method diloco",
					   codec_facts[run_config_mean_codec(c)].name);
	return RV_OK;
}

static enum rv_err sparseloco_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	RV_TRY(synchronous_round(r, out, et));
	out->bytes = (uint64_t)(out->participants - 1) * averaging_payload_bytes(r);
	return RV_OK;
}

const struct lab_method lab_method_sparseloco = {
	.name = "sparseloco",
	AVERAGING_METHOD,
	.synchronous = true,
	.prescribes_outer = true,
	.prescribed_outer = OUTER_sgd,
	.configure = configure,
	.check = check,
	.round = sparseloco_round,
};
