/* facts.c: see facts.h. */
#include "lab/worker_files/facts.h"

#include "base/assert.h"
#include "base/hex.h"

#include <stdarg.h>

void facts_put(json_t *facts, const char *format, ...) {
	va_list values;
	va_start(values, format);
	json_t *more = json_vpack_ex(NULL, 0, format, values);
	va_end(values);
	RV_ASSERT(more);
	json_object_update(facts, more);
	json_decref(more);
}

void facts_put_hash(json_t *facts, const char *key, const struct rv_hash *h) {
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(h->b, RV_HASH_BYTES, hex);
	json_object_set_new(facts, key, json_string(hex));
}

void facts_put_version(json_t *facts, uint32_t version, uint32_t known) {
	json_object_set_new(facts, "version", json_integer(version));
	if (version > known)
		json_object_set_new(facts, "remark",
							json_sprintf("a newer version: this program reads version %u; use the release that wrote "
										 "it, or a later one",
										 known));
}
