/* order.h: order statistics: the k-th smallest of a few values, as for medians and quartiles. No
 * memory, no state. */
#ifndef RV_BASE_ORDER_H
#define RV_BASE_ORDER_H

#include <stdint.h>

/* Returns the value at `place` of the n values in ascending order, 0 <= place < n, asserted.
 * Linear in n (MSD radix selection: Knuth, TAOCP 3, 5.2.5). With a NaN among them: any of the
 * values. */
double rv_nth(const double *values, int n, int place);
uint64_t rv_nth_u64(const uint64_t *values, int n, int place);

#endif
