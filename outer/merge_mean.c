/* merge_mean.c: the weighted mean, with contributions limited by the median of their norms: see
 * merge.h. */
#include "base/assert.h"
#include "base/order.h"
#include "outer/merge.h"
#include "outer/merge_values.h"

#include <math.h>
#include <string.h>

static bool mean_wants_norms(const struct merge_params *p, int n_in) {
	return p->clip > 0 && n_in >= MERGE_CLIP_MIN;
}

/* Scales down the factors of contributions whose norm is above the limit. */
static void limit_factors(const struct merge_inputs *c, double clip, float *factors, uint32_t *clipped) {
	double norm[MERGE_MAX_INPUTS];
	for (int i = 0; i < c->n_in; i++)
		norm[i] = sqrt(c->norm2[i]);
	const double limit = clip * rv_nth(norm, c->n_in, (c->n_in - 1) / 2);
	for (int i = 0; i < c->n_in; i++) {
		if (!(norm[i] > limit))
			continue;
		factors[i] = (float)(limit / norm[i] * (double)c->weights[i]);
		RV_ASSERT(factors[i] >= 0 && factors[i] <= (float)c->weights[i]); /* a limit never adds */
		if (clipped)
			clipped[i]++;
	}
}

/* Sets sum to the sum of the contributions, each times its factor: its weight, less if it is
 * limited. */
static enum rv_err mean_sum(const struct merge_inputs *c, const struct merge_params *p, float *work, float *sum,
							uint32_t *clipped, struct rv_errtext *et) {
	float factors[MERGE_MAX_INPUTS];
	(void)work;
	for (int i = 0; i < c->n_in; i++)
		factors[i] = (float)c->weights[i];
	if (mean_wants_norms(p, c->n_in))
		limit_factors(c, p->clip, factors, clipped);
	memset(sum, 0, c->n * sizeof *sum);
	for (int i = 0; i < c->n_in; i++) {
		enum rv_err e = c->codecs[i]->decode_add(c->codecs[i], c->in[i], c->n, factors[i], sum, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
	}
	return RV_OK;
}

static enum rv_err mean_merge(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
							  uint32_t *clipped, struct rv_errtext *et) {
	RV_TRY(mean_sum(c, p, work, mean, clipped, et));
	merge_divide(mean, c->n, (float)merge_weight_sum(c->weights, c->n_in));
	return RV_OK;
}

const struct merge_ops merge_mean = {
	.name = "mean", .wants_norms = mean_wants_norms, .merge = mean_merge, .sum = mean_sum};
