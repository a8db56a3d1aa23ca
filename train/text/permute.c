/* permute.c: a balanced Feistel network (Luby & Rackoff 1988) over the smallest 2^(2k) >= n, with
 * Philox as the round function, iterated until it lands in [0, n) (Black & Rogaway, "Ciphers with
 * arbitrary finite domains", CT-RSA 2002, method 2): as 2^(2k) < 4n, in under 4 tries. */
#include "train/text/permute.h"

#include "base/assert.h"
#include "base/rng.h"

enum { FEISTEL_ROUNDS = 6, MAX_HALF_BITS = 31 };

static int half_bits_for(uint64_t n) {
	int k = 1;
	while ((uint64_t)1 << (2 * k) < n)
		k++;
	return k;
}

static uint64_t feistel(uint64_t key, int half_bits, uint64_t x) {
	uint64_t mask = ((uint64_t)1 << half_bits) - 1;
	uint64_t left = x >> half_bits, right = x & mask;
	for (int round = 0; round < FEISTEL_ROUNDS; round++) {
		uint32_t f[4];
		rv_philox(key, (uint64_t)round, right, f);
		uint64_t next = left ^ (f[0] & mask);
		left = right;
		right = next;
	}
	return left << half_bits | right;
}

uint64_t permute_index(uint64_t n, uint64_t key, uint64_t i) {
	RV_ASSERT(i < n);
	int half_bits = half_bits_for(n);
	RV_ASSERT(half_bits <= MAX_HALF_BITS);
	do
		i = feistel(key, half_bits, i);
	while (i >= n);
	return i;
}
