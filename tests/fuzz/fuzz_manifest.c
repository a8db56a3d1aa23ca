/* fuzz_manifest.c: a manifest.json that somebody has written. What is accepted is printed and read
 * again as the same, and its arithmetic holds. */
#include "tests/fuzz/fuzz.h"
#include "train/text/published/index_pages.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct manifest m, again;
	struct rv_errtext et = {0};
	struct rv_hash hash, same;
	char *text;
	if (manifest_parse("fuzz", data, size, &m, &et) != RV_OK) {
		RV_ASSERT(et.text[0]);
		return 0;
	}
	RV_ASSERT(manifest_print(&m, &text, &et) == RV_OK);
	RV_ASSERT(manifest_parse("again", (const uint8_t *)text, strlen(text), &again, &et) == RV_OK);
	free(text);
	RV_ASSERT(memcmp(&m, &again, sizeof m) == 0);
	RV_ASSERT(manifest_hash(&m, &hash, &et) == RV_OK && manifest_hash(&again, &same, &et) == RV_OK);
	RV_ASSERT(rv_hash_equal(&hash, &same));
	const struct manifest_place last = manifest_place(&m, (uint64_t)m.n_tokens - 1);
	RV_ASSERT(last.shard == (uint64_t)m.n_shards - 1);
	RV_ASSERT(last.token + 1 == manifest_shard_tokens(&m, last.shard));
	const struct index_shape shape = index_shape_of(&m);
	RV_ASSERT(shape.n[shape.levels - 1] == 1);
	return 0;
}
