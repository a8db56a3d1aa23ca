/* fuzz_replica.h: what the fuzzers of files with a replica's state share. */
#ifndef RV_TESTS_FUZZ_FUZZ_REPLICA_H
#define RV_TESTS_FUZZ_FUZZ_REPLICA_H

#include "base/hash.h"

#include <string.h>

/* Makes the hash at the end of replica_save's n bytes right: no search finds a BLAKE2b value. */
static inline void fuzz_seal_replica(uint8_t *state, size_t n) {
	struct rv_hash hash;
	struct rv_hasher h = rv_hasher_of("rivulet replica");
	rv_hash_update(&h, state, n - RV_HASH_BYTES);
	hash = rv_hash_final(&h);
	memcpy(state + n - RV_HASH_BYTES, hash.b, RV_HASH_BYTES);
}

#endif
