/* sim_seals.c: signatures of means, without the cost of Ed25519: a hash that names the key. Nobody
 * in the simulator makes one of another's key, but by plan (sim_liars.c). */
#include "tests/sim/sim.h"

#include "base/assert.h"

#include <string.h>

static void signature_of(const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct rv_hash *root,
						 uint8_t out[NET_SIG_BYTES]) {
	struct rv_hasher h = rv_hasher_of("sim seal");
	rv_hash_update(&h, key, NET_KEY_BYTES);
	rv_hash_update(&h, scope->roster.b, RV_HASH_BYTES);
	rv_hash_u64(&h, scope->term);
	rv_hash_u64(&h, scope->round);
	rv_hash_u64(&h, scope->attempt);
	rv_hash_u64(&h, scope->kind | (uint64_t)scope->first << 8);
	rv_hash_update(&h, root->b, RV_HASH_BYTES);
	const struct rv_hash sum = rv_hash_final(&h);
	memcpy(out, sum.b, RV_HASH_BYTES);
	memset(out + RV_HASH_BYTES, 0, NET_SIG_BYTES - RV_HASH_BYTES);
}

static void sign(void *ctx, const struct seal_scope *scope, const struct rv_hash *root, struct seal *out) {
	const struct identity *id = ctx;
	out->root = *root;
	signature_of(id->key, scope, root, out->signature);
}

static bool verify(void *ctx, const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope,
				   const struct seal *seal) {
	(void)ctx;
	uint8_t want[NET_SIG_BYTES];
	signature_of(key, scope, &seal->root, want);
	return memcmp(want, seal->signature, sizeof want) == 0;
}

struct seal_ops sim_seals(const struct identity *id) {
	return (struct seal_ops){.ctx = (void *)(uintptr_t)id, .sign = sign, .verify = verify};
}
