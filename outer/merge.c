/* merge.c: see merge.h. */
#include "outer/merge.h"

#include "base/assert.h"
#include "outer/codec_kernels.h"
#include "outer/elementwise.h"

#include <math.h>
#include <string.h>

enum { WEIGHT_SUM_MAX = 1 << 24 }; /* below it a sum of integers is exact in fp32 */

/* The contributions to one chunk. */
struct inputs {
	const struct codec *codec;
	const uint8_t *const *in;
	const uint32_t *weights;
	int n_in;
	size_t n;
	float factors[MERGE_MAX_INPUTS]; /* of each in the sum: its weight, less where it is limited */
};

RV_ELEMENTWISE_BODY divide_body(float *x, size_t n, float divisor) {
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		VEC_AT(x + i) = VEC_AT(x + i) / divisor;
	for (; i < n; i++)
		x[i] = x[i] / divisor;
}

RV_ELEMENTWISE(divide, (float *x, size_t n, float divisor), (x, n, divisor))

/* Returns the sum of squares of contribution i; anything for one that cannot be decoded: the sum finds that. `values`
 * (n) is overwritten. */
static double sum_squares(const struct inputs *c, int i, float *values) {
	if (c->codec->sum_squares)
		return c->codec->sum_squares(c->in[i], c->n);
	if (c->codec->decode(c->in[i], c->n, values, NULL) != RV_OK)
		return 0;
	return codec_kernels_best()->dot(values, values, c->n);
}

/* Returns the norm at place (n_in - 1) / 2, ascending. */
static double median_norm(const double *norm, int n_in) {
	double sorted[MERGE_MAX_INPUTS];
	for (int i = 0; i < n_in; i++) {
		int at = i;
		for (; at > 0 && norm[i] < sorted[at - 1]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = norm[i];
	}
	return sorted[(n_in - 1) / 2];
}

/* Scales down the factors of those whose norm is above the limit. */
static void limit_factors(struct inputs *c, double clip, const double *norm2, struct merge_measured *measured) {
	double norm[MERGE_MAX_INPUTS];
	for (int i = 0; i < c->n_in; i++)
		norm[i] = sqrt(norm2[i]);
	const double limit = clip * median_norm(norm, c->n_in);
	for (int i = 0; i < c->n_in; i++) {
		if (!(norm[i] > limit))
			continue;
		c->factors[i] = (float)(limit / norm[i] * (double)c->weights[i]);
		if (measured)
			measured->clipped[i]++;
	}
}

/* Weighs the contributions, and limits those with a norm beyond the rule's. `values` (n) is overwritten. */
static void weigh(struct inputs *c, double clip, float *values, struct merge_measured *measured) {
	const bool limits = clip > 0 && c->n_in >= MERGE_CLIP_MIN;
	double norm2[MERGE_MAX_INPUTS];
	for (int i = 0; i < c->n_in; i++) {
		c->factors[i] = (float)c->weights[i];
		if (limits || measured)
			norm2[i] = sum_squares(c, i, values);
		if (measured)
			measured->norm2[i] += norm2[i];
	}
	if (limits)
		limit_factors(c, clip, norm2, measured);
}

/* mean (n) = the sum of the contributions, each times its factor, over the sum of the weights. */
static enum rv_err mean_of(const struct inputs *c, float *mean, struct rv_errtext *et) {
	uint64_t weight_sum = 0;
	memset(mean, 0, c->n * sizeof *mean);
	for (int i = 0; i < c->n_in; i++) {
		RV_ASSERT(c->weights[i] > 0);
		weight_sum += c->weights[i];
		enum rv_err e = c->codec->decode_add(c->in[i], c->n, c->factors[i], mean, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
	}
	RV_ASSERT(weight_sum < WEIGHT_SUM_MAX);
	divide(mean, c->n, (float)weight_sum);
	return RV_OK;
}

/* Returns the dot product of contribution i, which can be decoded, with the mean. `values` (n) is overwritten. */
static double dot_with(const struct inputs *c, int i, const float *mean, float *values) {
	if (c->codec->dot)
		return c->codec->dot(c->in[i], c->n, mean);
	if (c->codec->decode(c->in[i], c->n, values, NULL) != RV_OK)
		return 0;
	return codec_kernels_best()->dot(values, mean, c->n);
}

static void measure(const struct inputs *c, const float *mean, struct merge_measured *m) {
	m->mean2 += codec_kernels_best()->dot(mean, mean, c->n);
	for (int i = 0; i < c->n_in; i++)
		m->dot[i] += dot_with(c, i, mean, m->values);
}

enum rv_err merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						size_t n, float *scratch, uint8_t *out, struct merge_measured *measured,
						struct rv_errtext *et) {
	RV_ASSERT(n_in > 0 && n_in <= MERGE_MAX_INPUTS);
	struct inputs c = {.codec = rule->contributions, .in = in, .weights = weights, .n_in = n_in, .n = n};
	weigh(&c, rule->clip, scratch, measured);
	RV_TRY(mean_of(&c, scratch, et));
	enum rv_err e = rule->mean->encode(scratch, n, out, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "mean of %d contributions", n_in);
	if (measured)
		measure(&c, scratch, measured);
	return RV_OK;
}
