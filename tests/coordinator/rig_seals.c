/* rig_seals.c: see rig_seals.h. */
#include "tests/coordinator/rig_seals.h"

#include <string.h>

void rig_seal(const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct rv_hash *root,
			  uint8_t out[NET_SIG_BYTES]) {
	struct rv_hasher h = rv_hasher_of("test seal");
	rv_hash_update(&h, key, NET_KEY_BYTES);
	rv_hash_update(&h, scope->roster.b, RV_HASH_BYTES);
	rv_hash_u64(&h, scope->round);
	rv_hash_u64(&h, scope->attempt | (uint64_t)scope->kind << 32);
	rv_hash_u64(&h, scope->first);
	rv_hash_update(&h, root->b, RV_HASH_BYTES);
	const struct rv_hash sum = rv_hash_final(&h);
	memset(out, 0, NET_SIG_BYTES);
	memcpy(out, sum.b, RV_HASH_BYTES);
}

static void sign(void *key, const struct seal_scope *scope, const struct rv_hash *root, struct seal *out) {
	out->root = *root;
	rig_seal(key, scope, root, out->signature);
}

void rig_sign_report(struct report *rep, const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t key[NET_KEY_BYTES]) {
	const struct seal_ops ops = {.ctx = (void *)(uintptr_t)key, .sign = sign};
	report_sign(rep, run_id, &ops);
}

static bool verify(void *ctx, const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope,
				   const struct seal *seal) {
	(void)ctx;
	uint8_t want[NET_SIG_BYTES];
	rig_seal(key, scope, &seal->root, want);
	return memcmp(want, seal->signature, sizeof want) == 0;
}

struct seal_ops rig_seals(void) {
	return (struct seal_ops){.verify = verify};
}
