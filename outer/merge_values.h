/* merge_values.h: the steps that aggregation rules share. Private to outer/. */
#ifndef RV_OUTER_MERGE_VALUES_H
#define RV_OUTER_MERGE_VALUES_H

#include "outer/merge.h"

/* Returns the sum of n weights; each is positive and the sum is below 2^24, asserted: exact in
 * fp32. */
uint32_t merge_weight_sum(const uint32_t *weights, int n);
/* Divide and multiply x (n), value by value. */
void merge_divide(float *x, size_t n, float divisor);
void merge_multiply(float *x, size_t n, float factor);

/* Sets sum (c->n) to the sum of the contributions, each times its factor, in roster order.
 * RV_E_CORRUPT names the place of the contribution that cannot be decoded. */
enum rv_err merge_sum(const struct merge_inputs *c, const float *factors, float *sum, struct rv_errtext *et);
/* Writes the weights as factors; those of contributions whose size, the root of size2 (n_in), is
 * above `clip` times the median size (merge.h) are scaled down. Returns how many; limited (n_in)
 * says which. At least MERGE_CLIP_MIN contributions. */
int merge_limit(const struct merge_inputs *c, double clip, const double *size2, float *factors, bool *limited);

#endif
