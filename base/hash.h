/* hash.h: BLAKE2b-256 (RFC 7693, libsodium), one-shot and incremental. About 1 GB/s: keep it off
 * the hot path. */
#ifndef RV_BASE_HASH_H
#define RV_BASE_HASH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium/crypto_generichash_blake2b.h>

enum { RV_HASH_BYTES = 32 };

struct rv_hash {
	uint8_t b[RV_HASH_BYTES];
};

struct rv_hasher {
	crypto_generichash_blake2b_state st;
};

/* Hash incrementally: init or rv_hasher_of, update any number of times, final once. Never fail. */
void rv_hash_init(struct rv_hasher *h);
/* Returns a hasher that starts with the NUL-terminated `domain` (its NUL included), so that hashes
 * of different things never collide. */
struct rv_hasher rv_hasher_of(const char *domain);
void rv_hash_update(struct rv_hasher *h, const void *data, size_t n);
void rv_hash_u64(struct rv_hasher *h, uint64_t v); /* little-endian */
struct rv_hash rv_hash_final(struct rv_hasher *h);
/* Returns the hash of n bytes. */
struct rv_hash rv_hash_of(const void *data, size_t n);
bool rv_hash_equal(const struct rv_hash *a, const struct rv_hash *b);
bool rv_hash_is_zero(const struct rv_hash *h);

#endif
