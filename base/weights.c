/* weights.c: see weights.h. */
#include "base/weights.h"

#include "base/assert.h"

static uint64_t gcd(uint64_t a, uint64_t b) {
	while (b != 0) {
		uint64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

static uint64_t scaled(uint64_t tokens, uint64_t divisor, int shift) {
	uint64_t weight = tokens / divisor >> shift;
	return weight > 0 ? weight : 1;
}

static uint64_t sum_of(const uint64_t *tokens, int n, uint64_t divisor, int shift) {
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) {
		uint64_t weight = scaled(tokens[i], divisor, shift);
		sum = sum > UINT64_MAX - weight ? UINT64_MAX : sum + weight;
	}
	return sum;
}

void rv_weights(const uint64_t *tokens, int n, bool by_tokens, uint32_t *weights) {
	RV_ASSERT(n >= 0 && n <= RV_WEIGHT_SUM_MAX);
	uint64_t divisor = 0;
	int shift = 0;
	for (int i = 0; i < n; i++)
		divisor = gcd(tokens[i], divisor);
	if (divisor == 0)
		divisor = 1;
	while (sum_of(tokens, n, divisor, shift) > RV_WEIGHT_SUM_MAX)
		shift++;
	for (int i = 0; i < n; i++)
		weights[i] = by_tokens ? (uint32_t)scaled(tokens[i], divisor, shift) : 1;
}
