/* merge_values.h: the steps that aggregation rules share. Private to outer/. */
#ifndef RV_OUTER_MERGE_VALUES_H
#define RV_OUTER_MERGE_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* Returns the sum of n weights; each is positive and the sum is below 2^24, asserted: exact in
 * fp32. */
uint32_t merge_weight_sum(const uint32_t *weights, int n);
/* Divide and multiply x (n), value by value. */
void merge_divide(float *x, size_t n, float divisor);
void merge_multiply(float *x, size_t n, float factor);

#endif
