/* hash.c: BLAKE2b-256 on libsodium. Its functions cannot fail for these lengths and do not need
 * sodium_init(): before it they run the portable code, after it (rv_hash_init calls it; idempotent
 * and thread-safe) the fastest one. */
#include "base/hash.h"

#include "base/assert.h"

#include <sodium/core.h>
#include <string.h>

void rv_hash_init(struct rv_hasher *h) {
	int ready = sodium_init();
	RV_ASSERT(ready >= 0);
	int rc = crypto_generichash_blake2b_init(&h->st, NULL, 0, RV_HASH_BYTES);
	RV_ASSERT(rc == 0);
}

struct rv_hasher rv_hasher_of(const char *domain) {
	struct rv_hasher h;
	rv_hash_init(&h);
	rv_hash_update(&h, domain, strlen(domain) + 1);
	return h;
}

void rv_hash_update(struct rv_hasher *h, const void *data, size_t n) {
	int rc = crypto_generichash_blake2b_update(&h->st, data, n);
	RV_ASSERT(rc == 0);
}

void rv_hash_u64(struct rv_hasher *h, uint64_t v) {
	uint8_t b[8];
	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	rv_hash_update(h, b, sizeof b);
}

struct rv_hash rv_hash_final(struct rv_hasher *h) {
	struct rv_hash out;
	int rc = crypto_generichash_blake2b_final(&h->st, out.b, RV_HASH_BYTES);
	RV_ASSERT(rc == 0);
	return out;
}

struct rv_hash rv_hash_of(const void *data, size_t n) {
	struct rv_hasher h;
	rv_hash_init(&h);
	rv_hash_update(&h, data, n);
	return rv_hash_final(&h);
}

bool rv_hash_equal(const struct rv_hash *a, const struct rv_hash *b) {
	return memcmp(a->b, b->b, RV_HASH_BYTES) == 0;
}

bool rv_hash_is_zero(const struct rv_hash *h) {
	static const struct rv_hash zero;
	return rv_hash_equal(h, &zero);
}
