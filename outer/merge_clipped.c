/* merge_clipped.c: the weighted mean of contributions that are limited by the median of their
 * norms: see merge.h. */
#include "outer/merge.h"
#include "outer/merge_values.h"

static bool clipped_wants_norms(const struct merge_params *p, int n_in) {
	(void)p;
	return n_in >= MERGE_CLIP_MIN;
}

/* Sets sum to the sum of the contributions, each times its factor: its weight, less if it is
 * limited. */
static enum rv_err clipped_sum(const struct merge_inputs *c, const struct merge_params *p, float *work, float *sum,
							   uint32_t *clipped, struct rv_errtext *et) {
	float factors[MERGE_MAX_INPUTS];
	bool limited[MERGE_MAX_INPUTS];
	if (c->n_in < MERGE_CLIP_MIN)
		return merge_mean.sum(c, p, work, sum, clipped, et);
	(void)merge_limit(c, p->clip, c->norm2, factors, limited);
	for (int i = 0; i < c->n_in; i++)
		clipped[i] += limited[i];
	return merge_sum(c, factors, sum, et);
}

static enum rv_err clipped_merge(const struct merge_inputs *c, const struct merge_params *p, float *work, float *mean,
								 uint32_t *clipped, struct rv_errtext *et) {
	RV_TRY(clipped_sum(c, p, work, mean, clipped, et));
	merge_divide(mean, c->n, (float)merge_weight_sum(c->weights, c->n_in));
	return RV_OK;
}

const struct merge_ops merge_clipped = {.name = "clipped",
										.reach = MERGE_REACHES_SHARE,
										.wants_norms = clipped_wants_norms,
										.merge = clipped_merge,
										.sum = clipped_sum};
