/* merge_mean.c: the weighted mean, and nothing else: see merge.h. */
#include "outer/merge.h"
#include "outer/merge_values.h"

static enum rv_err mean_sum(const struct merge_inputs *c, const struct merge_params *p, float *work, float *sum,
							uint32_t *clipped, struct rv_errtext *et) {
	float factors[MERGE_MAX_INPUTS];
	(void)p, (void)work, (void)clipped;
	for (int i = 0; i < c->n_in; i++)
		factors[i] = (float)c->weights[i];
	return merge_sum(c, factors, sum, et);
}

static enum rv_err mean_merge(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
							  uint32_t *clipped, struct rv_errtext *et) {
	RV_TRY(mean_sum(c, p, work, mean, clipped, et));
	merge_divide(mean, c->n, (float)merge_weight_sum(c->weights, c->n_in));
	return RV_OK;
}

const struct merge_ops merge_mean = {.name = "mean", .merge = mean_merge, .sum = mean_sum};
