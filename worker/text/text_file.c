/* text_file.c: see text_file.h. */
#include "worker/text/text_file.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A shard's number has 30 bits, a level two. */
enum { LEVEL_SHIFT = 40, KIND_SHIFT = 48 };

uint64_t text_file_id(const struct text_file *f) {
	return (uint64_t)f->kind << KIND_SHIFT | (uint64_t)f->level << LEVEL_SHIFT | f->i;
}

struct text_file text_file_of(uint64_t id) {
	return (struct text_file){.kind = (enum text_file_kind)(id >> KIND_SHIFT),
							  .level = (int)(id >> LEVEL_SHIFT & 3),
							  .i = id & (((uint64_t)1 << LEVEL_SHIFT) - 1)};
}

void text_file_name(const struct text_file *f, char out[static 32]) {
	if (f->kind == TEXT_PAGE)
		index_page_name(f->level, f->i, out);
	else
		manifest_shard_name(f->i, out);
}

bool text_file_parse_shard(const char *name, uint64_t *shard, bool *is_part) {
	char again[40];
	int end = 0;
	if (strlen(name) >= sizeof again || sscanf(name, "shard-%10" SCNu64 ".bin%n", shard, &end) != 1 || end == 0 ||
		*shard >= MANIFEST_MAX_SHARDS)
		return false;
	*is_part = strcmp(name + end, ".part") == 0;
	manifest_shard_name(*shard, again);
	return strncmp(name, again, strlen(again)) == 0 && (*is_part || strcmp(name, again) == 0);
}

uint64_t text_file_bytes(const struct manifest *m, const struct text_file *f) {
	if (f->kind == TEXT_SHARD)
		return manifest_shard_bytes(m, f->i);
	const struct index_shape shape = index_shape_of(m);
	RV_ASSERT(f->level < shape.levels);
	return index_page_hashes(&shape, f->level, f->i) * RV_HASH_BYTES;
}
