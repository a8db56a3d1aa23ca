/* index_pages.c: see index_pages.h. */
#include "train/text/published/index_pages.h"

#include "base/assert.h"
#include "base/file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct rv_hash) == RV_HASH_BYTES, "a page is read and written as it lies in memory");
_Static_assert((int64_t)INDEX_FAN *INDEX_FAN *INDEX_FAN == MANIFEST_MAX_SHARDS, "the levels hold all shards");

struct index_shape index_shape_of(const struct manifest *m) {
	struct index_shape s = {.n_shards = (uint64_t)m->n_shards};
	uint64_t below = s.n_shards;
	do {
		RV_ASSERT(s.levels < INDEX_LEVELS);
		below = (below + INDEX_FAN - 1) / INDEX_FAN;
		s.n[s.levels++] = below;
	} while (below > 1);
	return s;
}

size_t index_page_hashes(const struct index_shape *s, int level, uint64_t i) {
	RV_ASSERT(level < s->levels && i < s->n[level]);
	uint64_t left = (level == 0 ? s->n_shards : s->n[level - 1]) - i * INDEX_FAN;
	return left < INDEX_FAN ? (size_t)left : INDEX_FAN;
}

void index_page_name(int level, uint64_t i, char out[static 32]) {
	(void)snprintf(out, 32, "index-%d-%06" PRIu64 ".hashes", level, i);
}

enum rv_err index_page_check(const char *name, const uint8_t *bytes, size_t n, size_t n_hashes,
							 const struct rv_hash *expected, struct index_page *out, struct rv_errtext *et) {
	RV_ASSERT(n_hashes <= INDEX_FAN);
	if (n != n_hashes * RV_HASH_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "%.300s: %zu bytes, must have %zu", name, n, n_hashes * RV_HASH_BYTES);
	const struct rv_hash got = rv_hash_of(bytes, n);
	if (!rv_hash_equal(&got, expected))
		return rv_fail(et, RV_E_CORRUPT, "%.300s: damaged, it does not have the hash of the page above or the manifest",
					   name);
	memcpy(out->hash, bytes, n);
	out->n = n_hashes;
	return RV_OK;
}

static enum rv_err read_page(const char *dir, const struct index_shape *s, int level, uint64_t i,
							 const struct rv_hash *expected, struct index_page *out, struct rv_errtext *et) {
	char path[PATH_MAX], name[32];
	uint8_t *bytes;
	size_t n;
	index_page_name(level, i, name);
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	RV_TRY(rv_file_read(path, INDEX_PAGE_BYTES, &bytes, &n, et));
	enum rv_err e = index_page_check(path, bytes, n, index_page_hashes(s, level, i), expected, out, et);
	free(bytes);
	return e;
}

enum rv_err index_page_read(const char *dir, const struct manifest *m, int level, uint64_t i, struct index_page *out,
							struct rv_errtext *et) {
	const struct index_shape s = index_shape_of(m);
	struct rv_hash expected = m->root;
	RV_ASSERT(level < s.levels && i < s.n[level]);
	for (int at = s.levels - 1; at >= level; at--) {
		uint64_t page = i;
		for (int down = at; down > level; down--)
			page /= INDEX_FAN;
		RV_TRY(read_page(dir, &s, at, page, &expected, out, et));
		if (at == level)
			break;
		uint64_t child = i;
		for (int down = at - 1; down > level; down--)
			child /= INDEX_FAN;
		expected = out->hash[child % INDEX_FAN];
	}
	return RV_OK;
}

enum rv_err index_shard_hash(const char *dir, const struct manifest *m, uint64_t shard, struct rv_hash *out,
							 struct rv_errtext *et) {
	struct index_page page;
	RV_TRY(index_page_read(dir, m, 0, shard / INDEX_FAN, &page, et));
	*out = page.hash[shard % INDEX_FAN];
	return RV_OK;
}

/* ---- writing ---- */

struct level_writer {
	const char *dir;
	const struct index_shape *shape;
	int level;
	enum rv_err (*below)(void *ctx, uint64_t i, struct rv_hash *out, struct rv_errtext *et);
	void *ctx;
};

static enum rv_err write_page(const struct level_writer *w, uint64_t i, struct rv_hash *out, struct rv_errtext *et) {
	struct index_page page = {.n = index_page_hashes(w->shape, w->level, i)};
	char path[PATH_MAX], name[32];
	for (size_t k = 0; k < page.n; k++)
		RV_TRY(w->below(w->ctx, i * INDEX_FAN + k, &page.hash[k], et));
	*out = rv_hash_of(page.hash, page.n * RV_HASH_BYTES);
	index_page_name(w->level, i, name);
	(void)snprintf(path, sizeof path, "%s/%s", w->dir, name);
	return rv_file_write_atomic(path, page.hash, page.n * RV_HASH_BYTES, 0644, et);
}

static enum rv_err hash_of_page(void *ctx, uint64_t i, struct rv_hash *out, struct rv_errtext *et) {
	const struct rv_hash *hashes = ctx;
	(void)et;
	*out = hashes[i];
	return RV_OK;
}

/* Writes the levels from the lowest up; of the one below only the hashes are kept. */
static enum rv_err write_levels(struct level_writer *w, struct rv_hash *hashes, struct rv_errtext *et) {
	for (w->level = 0; w->level < w->shape->levels; w->level++) {
		/* Page i of a level reads hashes from i * INDEX_FAN on, and writes hash i: never one to
		 * come. */
		for (uint64_t i = 0; i < w->shape->n[w->level]; i++)
			RV_TRY(write_page(w, i, &hashes[i], et));
		w->below = hash_of_page;
		w->ctx = hashes;
	}
	return RV_OK;
}

enum rv_err index_pages_write(const char *dir, struct manifest *m,
							  enum rv_err (*hash)(void *ctx, uint64_t shard, struct rv_hash *out,
												  struct rv_errtext *et),
							  void *ctx, struct rv_errtext *et) {
	const struct index_shape shape = index_shape_of(m);
	struct level_writer w = {.dir = dir, .shape = &shape, .below = hash, .ctx = ctx};
	struct rv_hash *hashes = calloc(shape.n[0], sizeof *hashes);
	if (!hashes)
		return rv_fail(et, RV_E_NOMEM, "no memory for the hashes of %" PRIu64 " index pages", shape.n[0]);
	enum rv_err e = write_levels(&w, hashes, et);
	m->root = hashes[0];
	free(hashes);
	return e;
}
