/* order.c: see order.h. */
#include "base/order.h"

#include "base/assert.h"

#include <string.h>

enum { BUCKET_BITS = 8, BUCKETS = 1 << BUCKET_BITS, KEY_BITS = 64 };

/* Maps doubles to integers of the same order: negative ones, whose bits grow with their size, are
 * turned round (IEEE 754). */
static uint64_t key_of_double(double value) {
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits >> (KEY_BITS - 1) ? ~bits : bits | UINT64_C(1) << (KEY_BITS - 1);
}

static double double_of_key(uint64_t key) {
	uint64_t bits = key >> (KEY_BITS - 1) ? key ^ UINT64_C(1) << (KEY_BITS - 1) : ~key;
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static uint64_t same_key(uint64_t value) {
	return value;
}

/* Narrows the values that share the first bits of the key at `place` down by one bucket; returns
 * its number, and sets *place within the bucket. */
static uint64_t choose_bucket(const int counts[BUCKETS], int *place) {
	uint64_t bucket = 0;
	while (*place >= counts[bucket])
		*place -= counts[bucket++];
	return bucket;
}

/* In the first round all values share the empty prefix. */
#define NTH(name, type, key_of, of_key)                                                                                \
	type name(const type *values, int n, int place) {                                                                  \
		uint64_t prefix = 0;                                                                                           \
		RV_ASSERT(place >= 0 && place < n);                                                                            \
		for (int shift = KEY_BITS - BUCKET_BITS; shift >= 0; shift -= BUCKET_BITS) {                                   \
			int counts[BUCKETS] = {0};                                                                                 \
			for (int i = 0; i < n; i++) {                                                                              \
				uint64_t key = key_of(values[i]) >> shift;                                                             \
				counts[key & (BUCKETS - 1)] += key >> BUCKET_BITS == prefix;                                           \
			}                                                                                                          \
			prefix = prefix << BUCKET_BITS | choose_bucket(counts, &place);                                            \
		}                                                                                                              \
		return of_key(prefix);                                                                                         \
	}

NTH(rv_nth, double, key_of_double, double_of_key)
NTH(rv_nth_u64, uint64_t, same_key, same_key)
