/* facts.c: see facts.h. */
#include "lab/worker_files/facts.h"

#include "base/hex.h"

void facts_put_hash(json_t *facts, const char *key, const struct rv_hash *h) {
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(h->b, RV_HASH_BYTES, hex);
	json_object_set_new(facts, key, json_string(hex));
}
