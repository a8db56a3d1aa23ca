/* capped.h: sums that stop at the largest value instead of wrapping around: for totals of numbers
 * that others report. */
#ifndef RV_BASE_CAPPED_H
#define RV_BASE_CAPPED_H

#include <stdint.h>

/* Returns a + b, at most UINT64_MAX. */
static inline uint64_t rv_add_capped(uint64_t a, uint64_t b) {
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns a * b, at most UINT64_MAX. */
static inline uint64_t rv_mul_capped(uint64_t a, uint64_t b) {
	return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

#endif
