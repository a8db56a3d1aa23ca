/* ranges.h: finds the range that contains a position, among ranges laid end to end. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_RANGES_H
#define RV_TRAIN_TEXT_TOKENIZER_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* Returns the index of the last of n >= 1 ranges that begins at or before `at`. `begin` ascends
 * from 0; of ranges with equal begins all but the last are empty. */
static inline size_t range_holding(const uint64_t *begin, size_t n, uint64_t at) {
	size_t lo = 0, hi = n;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (begin[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

#endif
