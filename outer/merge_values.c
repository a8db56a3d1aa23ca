/* merge_values.c: see merge_values.h. */
#include "outer/merge_values.h"

#include "base/assert.h"
#include "outer/elementwise.h"

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
