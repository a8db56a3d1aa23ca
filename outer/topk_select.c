/* topk_select.c: see topk_select.h. */
#include "outer/topk_select.h"

#include "base/assert.h"
#include "outer/float_bits.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, TOP_SHIFT = 24 };

/* Finds digit by digit from the top: counts, of those that agree so far, how many have a larger
 * next one. */
uint32_t topk_threshold(const uint32_t *magnitude, size_t n, size_t count) {
	uint32_t found = 0, known = 0;
	for (int shift = TOP_SHIFT; shift >= 0; shift -= DIGIT_BITS) {
		size_t with[DIGITS] = {0};
		for (size_t i = 0; i < n; i++)
			if ((magnitude[i] & known) == found)
				with[magnitude[i] >> shift & (DIGITS - 1)]++;
		uint32_t digit = DIGITS - 1;
		for (; with[digit] < count; digit--)
			count -= with[digit];
		found |= digit << shift;
		known |= (uint32_t)(DIGITS - 1) << shift;
	}
	return found;
}

size_t topk_select(const float *x, size_t n, size_t most, uint32_t least_bits, uint16_t *index) {
	uint32_t magnitude[TOPK_GROUP], threshold = least_bits;
	size_t candidates = 0, above = 0, chosen = 0;
	RV_ASSERT(n <= TOPK_GROUP && most > 0);
	for (size_t i = 0; i < n; i++) {
		magnitude[i] = float_magnitude(x[i]);
		candidates += magnitude[i] >= least_bits;
	}
	if (candidates > most)
		threshold = topk_threshold(magnitude, n, most);
	for (size_t i = 0; i < n; i++)
		above += magnitude[i] > threshold;
	size_t equals = candidates > most ? most - above : n;
	for (size_t i = 0; i < n; i++) {
		const bool equal = magnitude[i] == threshold && equals > 0;
		if (magnitude[i] <= threshold && !equal)
			continue;
		equals -= equal;
		index[chosen++] = (uint16_t)i;
	}
	return chosen;
}
