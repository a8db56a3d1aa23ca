/* merge_centered.c: CenteredClip from the last mean: see merge.h. */
#include "outer/codec_kernels.h"
#include "outer/elementwise.h"
#include "outer/merge.h"
#include "outer/merge_values.h"

#include <string.h>

/* Computes v <- v + (sum - factor * v) / weight, value by value. */
RV_ELEMENTWISE_BODY step_body(float *restrict v, const float *restrict sum, size_t n, float factor, float weight) {
	for (size_t i = 0; i < n; i++)
		v[i] = v[i] + (sum[i] - factor * v[i]) / weight;
}

RV_ELEMENTWISE(step, (float *v, const float *sum, size_t n, float factor, float weight), (v, sum, n, factor, weight))

/* The decoded contribution and its difference to the center, or the sum of all. */
static size_t centered_vectors(int n_in) {
	(void)n_in;
	return 2;
}

/* Sets distance2 (n_in) to the squares of the distances of the contributions from v (n). */
static enum rv_err measure_distances(const struct merge_inputs *c, const float *v, float *work, double *distance2,
									 struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float *x = work, *difference = work + c->n;
	for (int i = 0; i < c->n_in; i++) {
		enum rv_err e = c->codecs[i]->decode(c->codecs[i], c->in[i], c->n, x, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
		(void)k->delta_absmax_bits(x, v, difference, c->n);
		distance2[i] = k->dot(difference, difference, c->n);
	}
	return RV_OK;
}

/* Moves v (n) by one step; `limited` says whose distance was too large. */
static enum rv_err centered_step(const struct merge_inputs *c, double clip, float *work, float *v, bool *limited,
								 struct rv_errtext *et) {
	double distance2[MERGE_MAX_INPUTS], factor = 0;
	float factors[MERGE_MAX_INPUTS], *sum = work;
	const float weight = (float)merge_weight_sum(c->weights, c->n_in);
	RV_TRY(measure_distances(c, v, work, distance2, et));
	const int n_limited = merge_limit(c, clip, distance2, factors, limited);
	RV_TRY(merge_sum(c, factors, sum, et));
	for (int i = 0; i < c->n_in; i++)
		factor += (double)factors[i];
	if (n_limited > 0)
		step(v, sum, c->n, (float)factor, weight);
	else
		memcpy(v, sum, c->n * sizeof *v);
	if (n_limited == 0)
		merge_divide(v, c->n, weight);
	return RV_OK;
}

static enum rv_err centered_merge(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
								  uint32_t *clipped, struct rv_errtext *et) {
	bool limited[MERGE_MAX_INPUTS] = {false};
	if (c->n_in < MERGE_CLIP_MIN)
		return merge_mean.merge(c, p, work, mean, clipped, et);
	if (c->center)
		memcpy(mean, c->center, c->n * sizeof *mean);
	else
		memset(mean, 0, c->n * sizeof *mean);
	for (int s = 0; s < MERGE_CENTER_STEPS; s++)
		RV_TRY(centered_step(c, p->clip, work, mean, limited, et));
	for (int i = 0; i < c->n_in; i++)
		clipped[i] += limited[i];
	return RV_OK;
}

const struct merge_ops merge_centered = {
	.name = "centered", .vectors = centered_vectors, .centers = true, .merge = centered_merge};
