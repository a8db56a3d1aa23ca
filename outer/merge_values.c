/* merge_values.c: see merge_values.h. */
#include "outer/merge_values.h"

#include "base/assert.h"
#include "base/order.h"
#include "outer/elementwise.h"

#include <math.h>
#include <string.h>

enum { WEIGHT_SUM_MAX = 1 << 24 }; /* below it a sum of integers is exact in fp32 */

uint32_t merge_weight_sum(const uint32_t *weights, int n) {
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) {
		RV_ASSERT(weights[i] > 0);
		sum += weights[i];
	}
	RV_ASSERT(sum < WEIGHT_SUM_MAX);
	return (uint32_t)sum;
}

RV_ELEMENTWISE_BODY divide_body(float *x, size_t n, float divisor) {
	for (size_t i = 0; i < n; i++)
		x[i] = x[i] / divisor;
}

RV_ELEMENTWISE(divide, (float *x, size_t n, float divisor), (x, n, divisor))

void merge_divide(float *x, size_t n, float divisor) {
	divide(x, n, divisor);
}

RV_ELEMENTWISE_BODY multiply_body(float *x, size_t n, float factor) {
	for (size_t i = 0; i < n; i++)
		x[i] = x[i] * factor;
}

RV_ELEMENTWISE(multiply, (float *x, size_t n, float factor), (x, n, factor))

void merge_multiply(float *x, size_t n, float factor) {
	multiply(x, n, factor);
}

enum rv_err merge_sum(const struct merge_inputs *c, const float *factors, float *sum, struct rv_errtext *et) {
	memset(sum, 0, c->n * sizeof *sum);
	for (int i = 0; i < c->n_in; i++) {
		enum rv_err e = c->codecs[i]->decode_add(c->codecs[i], c->in[i], c->n, factors[i], sum, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, c->n_in);
	}
	return RV_OK;
}

int merge_limit(const struct merge_inputs *c, double clip, const double *size2, float *factors, bool *limited) {
	double size[MERGE_MAX_INPUTS];
	int n = 0;
	RV_ASSERT(clip >= 1 && c->n_in >= MERGE_CLIP_MIN);
	for (int i = 0; i < c->n_in; i++)
		size[i] = sqrt(size2[i]);
	const double limit = clip * rv_nth(size, c->n_in, (c->n_in - 1) / 2);
	for (int i = 0; i < c->n_in; i++) {
		factors[i] = (float)c->weights[i];
		limited[i] = size[i] > limit;
		if (!limited[i])
			continue;
		factors[i] = (float)(limit / size[i] * (double)c->weights[i]);
		RV_ASSERT(factors[i] >= 0 && factors[i] <= (float)c->weights[i]); /* a limit never adds */
		n++;
	}
	return n;
}
