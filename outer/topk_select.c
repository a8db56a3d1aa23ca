/* topk_select.c: see topk_select.h.
 *
 * Of 4096 values few are kept, so most are dismissed without a look at each: the maxima of blocks
 * of 16 come from one vectorized pass; their `most`-th largest is a bound, as at least `most`
 * values reach it; only blocks that reach it are looked into. The threshold is then found among
 * those candidates, digit by digit. Bytes moved: the values, once. */
#include "outer/topk_select.h"

#include "base/assert.h"
#include "outer/elementwise.h"
#include "outer/float_bits.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, TOP_SHIFT = 24, BLOCK = 16, BLOCKS = TOPK_GROUP / BLOCK };

/* Finds digit by digit from the top: counts, of those that agree so far, how many have a larger
 * next one. */
uint32_t topk_threshold(const uint32_t *magnitude, size_t n, size_t count) {
	uint32_t found = 0, known = 0;
	for (int shift = TOP_SHIFT; shift >= 0; shift -= DIGIT_BITS) {
		uint16_t with[DIGITS] = {0};
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

RV_ELEMENTWISE_BODY block_maxima_body(const uint32_t *bits, size_t n_blocks, uint32_t *maxima) {
	for (size_t b = 0; b < n_blocks; b++) {
		uint32_t most = 0;
		for (size_t i = 0; i < BLOCK; i++) {
			const uint32_t magnitude = bits[b * BLOCK + i] & FLOAT_MAGNITUDE;
			most = magnitude > most ? magnitude : most;
		}
		maxima[b] = most;
	}
}

RV_ELEMENTWISE(block_maxima, (const uint32_t *bits, size_t n_blocks, uint32_t *maxima), (bits, n_blocks, maxima))

/* Magnitudes that may be among the largest, and their places, ascending. */
struct candidates {
	size_t n;
	uint32_t magnitude[TOPK_GROUP];
	uint16_t index[TOPK_GROUP];
};

/* Adds the values of [from, to) that reach the bound. */
static void look(struct candidates *c, const uint32_t *bits, size_t from, size_t to, uint32_t bound) {
	for (size_t i = from; i < to; i++) {
		const uint32_t magnitude = bits[i] & FLOAT_MAGNITUDE;
		c->magnitude[c->n] = magnitude;
		c->index[c->n] = (uint16_t)i;
		c->n += magnitude >= bound;
	}
}

static void find_candidates(struct candidates *c, const uint32_t *bits, size_t n, size_t most, uint32_t least_bits) {
	uint32_t maxima[BLOCKS], bound = least_bits;
	const size_t n_blocks = n / BLOCK;
	block_maxima(bits, n_blocks, maxima);
	if (n_blocks >= most) {
		const uint32_t reached = topk_threshold(maxima, n_blocks, most);
		bound = reached > least_bits ? reached : least_bits;
	}
	c->n = 0;
	for (size_t b = 0; b < n_blocks; b++)
		if (maxima[b] >= bound)
			look(c, bits, b * BLOCK, (b + 1) * BLOCK, bound);
	look(c, bits, n_blocks * BLOCK, n, bound);
}

size_t topk_select(const float *x, size_t n, size_t most, uint32_t least_bits, uint16_t *index) {
	uint32_t bits[TOPK_GROUP];
	struct candidates c;
	size_t above = 0, chosen = 0;
	RV_ASSERT(n <= TOPK_GROUP && most > 0);
	memcpy(bits, x, n * sizeof *bits);
	find_candidates(&c, bits, n, most, least_bits);
	const uint32_t threshold = c.n > most ? topk_threshold(c.magnitude, c.n, most) : least_bits;
	for (size_t i = 0; i < c.n; i++)
		above += c.magnitude[i] > threshold;
	size_t equals = c.n > most ? most - above : c.n;
	for (size_t i = 0; i < c.n; i++) {
		const bool equal = c.magnitude[i] == threshold && equals > 0;
		if (c.magnitude[i] <= threshold && !equal)
			continue;
		equals -= equal;
		index[chosen++] = c.index[i];
	}
	RV_ASSERT(chosen <= most && chosen <= c.n);
	return chosen;
}
