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

/* Returns RV_WEIGHT_CAP medians; UINT64_MAX: too few for a median. */
static uint64_t most_of(const uint64_t *tokens, int n) {
	if (n < RV_WEIGHT_CAP_MIN)
		return UINT64_MAX;
	const uint64_t median = rv_nth_u64(tokens, n, (n - 1) / 2);
	return median > UINT64_MAX / RV_WEIGHT_CAP ? UINT64_MAX : RV_WEIGHT_CAP * median;
}

/* Writes to counted (n) the tokens, each at most RV_WEIGHT_CAP medians. */
static void cap(const uint64_t *tokens, int n, uint64_t *counted) {
	const uint64_t most = most_of(tokens, n);
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

void rv_weights_cap(uint32_t *weights, int n, const uint32_t *of, int n_of) {
	RV_ASSERT(n >= 0 && n <= RV_WEIGHTS_MAX && n_of >= 0 && n_of <= RV_WEIGHTS_MAX);
	uint64_t counted[RV_WEIGHTS_MAX] = {0};
	for (int i = 0; i < n_of; i++)
		counted[i] = of[i];
	const uint64_t most = most_of(counted, n_of);
	for (int i = 0; i < n; i++)
		weights[i] = weights[i] < most ? weights[i] : (uint32_t)most;
}
