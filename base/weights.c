/* weights.c: see weights.h. */
#include "base/weights.h"

#include "base/assert.h"
#include "base/order.h"

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

/* Writes to counted (n) the tokens, each at most RV_WEIGHT_CAP medians. */
static void cap(const uint64_t *tokens, int n, uint64_t *counted) {
	uint64_t most = UINT64_MAX;
	if (n >= RV_WEIGHT_CAP_MIN) {
		uint64_t median = rv_nth_u64(tokens, n, (n - 1) / 2);
		most = median > UINT64_MAX / RV_WEIGHT_CAP ? UINT64_MAX : RV_WEIGHT_CAP * median;
	}
	for (int i = 0; i < n; i++)
		counted[i] = tokens[i] < most ? tokens[i] : most;
}

void rv_weights(const uint64_t *tokens, int n, bool by_tokens, uint32_t *weights) {
	RV_ASSERT(n >= 0 && n <= RV_WEIGHTS_MAX);
	uint64_t counted[RV_WEIGHTS_MAX], divisor = 0;
	int shift = 0;
	cap(tokens, n, counted);
	for (int i = 0; i < n; i++)
		divisor = gcd(counted[i], divisor);
	if (divisor == 0)
		divisor = 1;
	while (sum_of(counted, n, divisor, shift) > RV_WEIGHT_SUM_MAX)
		shift++;
	for (int i = 0; i < n; i++)
		weights[i] = by_tokens ? (uint32_t)scaled(counted[i], divisor, shift) : 1;
}
