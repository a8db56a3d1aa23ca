/* merge_reach.c: see merge_reach.h. */
#include "outer/merge_reach.h"

#include "base/assert.h"
#include "base/order.h"
#include "outer/codec_kernels.h"

#include <math.h>
#include <string.h>

#define ROUNDED 1e-4  /* more than sums in fp32 are off by, as a part of the terms' norms */
#define NORMAL  1e-34 /* values below may become 0, whatever the codec loses */

size_t merge_reach_scratch(size_t n) {
	return 2 * n;
}

/* Where the mean lies: within `radius` of a center; `size`: the sum of the terms' norms. */
struct reach {
	double radius, size;
};

static double norm_of(const float *x, size_t n) {
	return sqrt(codec_kernels_best()->dot(x, x, n));
}

static const struct codec *codec_of(const struct merge_rule *rule, int i) {
	return rule->codecs ? rule->codecs[i] : rule->contributions;
}

static enum rv_err measure(const struct merge_rule *rule, const struct merge_known *k, size_t n, float *values,
						   double *norms, struct rv_errtext *et) {
	for (int i = 0; i < k->n_in; i++) {
		const struct codec *c = codec_of(rule, i);
		RV_TRY(c->decode(c, k->in[i], n, values, et));
		norms[i] = norm_of(values, n);
	}
	return RV_OK;
}

/* Adds the known contributions to center (n), each limited by `most`. They may have been limited by
 * less, down to `least`. */
static enum rv_err add_known(const struct merge_rule *rule, const struct merge_known *k, size_t n, const double *norms,
							 double least, double most, float *center, struct reach *r, struct rv_errtext *et) {
	double weight = k->missing_weight, size = k->missing_weight * most, spread = size;
	for (int i = 0; i < k->n_in; i++)
		weight += k->weights[i];
	for (int i = 0; i < k->n_in; i++) {
		const struct codec *c = codec_of(rule, i);
		const double length = fmin(norms[i], most), part = norms[i] > 0 ? length / norms[i] : 1;
		RV_TRY(c->decode_add(c, k->in[i], n, (float)(part * k->weights[i] / weight), center, et));
		size += k->weights[i] * length;
		spread += k->weights[i] * (length - fmin(norms[i], least));
	}
	r->size = size / weight;
	r->radius = spread / weight;
	return RV_OK;
}

/* Sets *reaches to false if the mean is further from center (n) than all that is lost explains. */
static enum rv_err compare(const struct merge_rule *rule, const struct reach *r, const uint8_t *mean, size_t n,
						   const float *center, float *values, bool *reaches, struct rv_errtext *et) {
	const double lost = rule->mean->loses * (norm_of(center, n) + r->radius);
	RV_TRY(rule->mean->decode(rule->mean, mean, n, values, et));
	for (size_t i = 0; i < n; i++)
		values[i] -= center[i];
	const double off = norm_of(values, n);
	*reaches = !(isfinite(off) && off > r->radius + lost + ROUNDED * r->size + NORMAL * sqrt((double)n));
	return RV_OK;
}

enum rv_err merge_reaches(const struct merge_rule *rule, const struct merge_known *k, const uint8_t *mean, size_t n,
						  float *scratch, bool *reaches, struct rv_errtext *et) {
	const int all = k->n_in + k->n_missing, middle = (all - 1) / 2;
	float *values = scratch, *center = scratch + n;
	double norms[MERGE_MAX_INPUTS];
	RV_ASSERT(n > 0 && k->n_in >= 0 && k->n_missing >= 0 && all <= MERGE_MAX_INPUTS);
	*reaches = true;
	if (rule->ops->reach == MERGE_REACHES_ALL || all < MERGE_CLIP_MIN || middle >= k->n_in)
		return RV_OK;
	RV_TRY(measure(rule, k, n, values, norms, et));
	const int low = middle - k->n_missing;
	const double most = rule->params.clip * rv_nth(norms, k->n_in, middle);
	const double least = low >= 0 ? rule->params.clip * rv_nth(norms, k->n_in, low) : 0;
	struct reach r = {.radius = most, .size = most};
	memset(center, 0, n * sizeof *center);
	if (rule->ops->reach == MERGE_REACHES_SHARE)
		RV_TRY(add_known(rule, k, n, norms, least, most, center, &r, et));
	return compare(rule, &r, mean, n, center, values, reaches, et);
}
