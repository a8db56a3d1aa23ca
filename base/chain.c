/* chain.c: the hash chain that names the shared state of a run. */
#include "base/chain.h"

#include <string.h>

struct rv_hash rv_run_hash(const uint8_t run_id[RV_RUN_ID_BYTES], const char *config) {
	struct rv_hasher h = rv_hasher_of("rivulet run");
	rv_hash_update(&h, run_id, RV_RUN_ID_BYTES);
	rv_hash_update(&h, config, strlen(config));
	return rv_hash_final(&h);
}

struct rv_hash rv_chain_start(const struct rv_hash *run_hash) {
	struct rv_hasher h = rv_hasher_of("rivulet chain");
	rv_hash_update(&h, run_hash->b, RV_HASH_BYTES);
	return rv_hash_final(&h);
}

struct rv_hash rv_chain_next(const struct rv_hash *state_hash, const struct rv_hash *digest) {
	struct rv_hasher h = rv_hasher_of("rivulet step");
	rv_hash_update(&h, state_hash->b, RV_HASH_BYTES);
	rv_hash_update(&h, digest->b, RV_HASH_BYTES);
	return rv_hash_final(&h);
}

struct rv_hash rv_round_digest(uint64_t round, const struct rv_hash *root) {
	struct rv_hasher h = rv_hasher_of("rivulet round");
	rv_hash_u64(&h, round);
	rv_hash_update(&h, root->b, RV_HASH_BYTES);
	return rv_hash_final(&h);
}
