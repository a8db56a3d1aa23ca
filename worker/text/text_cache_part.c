/* text_cache_part.c: files under way (worker/text/text_cache.h). */
#include "base/assert.h"
#include "base/file.h"
#include "train/text/published/file_hash.h"
#include "worker/text/text_cache_state.h"
#include "worker/text/text_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHECK_BYTES = 8 };

uint64_t text_cache_check(const void *bytes, size_t n) {
	const struct rv_hash h = rv_hash_of(bytes, n);
	uint64_t check;
	memcpy(&check, h.b, sizeof check);
	return check ? check : 1;
}

static uint64_t part_bytes(const struct text_part *p) {
	return p->bytes + (uint64_t)p->n_ranges * CHECK_BYTES;
}

/* Finds the ranges whose bytes have the hash that the part says. */
static void find_ranges(const struct text_part *p, uint8_t *held, uint8_t *range_bytes) {
	for (uint32_t r = 0; r < p->n_ranges; r++) {
		const uint32_t n = text_core_range_bytes(p->bytes, r);
		uint64_t check = 0;
		held[r] = rv_read_at(p->fd, &check, sizeof check, p->bytes + (uint64_t)r * CHECK_BYTES) == sizeof check &&
				  check != 0 && rv_read_at(p->fd, range_bytes, n, (uint64_t)r * TEXT_RANGE_BYTES) == (ssize_t)n &&
				  text_cache_check(range_bytes, n) == check;
	}
}

/* Looks at what an earlier process left. A file of another size is not a part of this one. */
static enum rv_err resume(const struct text_part *p, const char *path, uint8_t *held, struct rv_errtext *et) {
	struct stat st;
	memset(held, 0, p->n_ranges);
	if (fstat(p->fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s", path);
	if ((uint64_t)st.st_size == part_bytes(p)) {
		uint8_t *bytes = malloc(TEXT_RANGE_BYTES);
		if (!bytes)
			return rv_fail(et, RV_E_NOMEM, "%s: no memory to look at it", path);
		find_ranges(p, held, bytes);
		free(bytes);
		return RV_OK;
	}
	return ftruncate(p->fd, 0) == 0 && ftruncate(p->fd, (off_t)part_bytes(p)) == 0
			   ? RV_OK
			   : rv_fail_errno(et, errno, "%s", path);
}

static struct text_part *free_part(struct text_cache *c) {
	for (int i = 0; i < TEXT_CACHE_PARTS; i++)
		if (c->parts[i].fd < 0)
			return &c->parts[i];
	return NULL;
}

/* Counts a shard's part in the quota. */
static enum rv_err reserve(struct text_cache *c, const struct text_part *p, bool *waits, struct rv_errtext *et) {
	const enum text_shelf_answer answer = text_shelf_take(&c->shelf, p->file.i, p->bytes);
	*waits = answer == TEXT_SHELF_FULL;
	if (answer == TEXT_SHELF_FULL)
		return rv_fail(et, RV_E_FULL, "%s: the cache is full of what is needed before", c->dir);
	return answer == TEXT_SHELF_TAKEN ? RV_OK : rv_fail(et, RV_E_NOMEM, "%s: no memory for its files", c->dir);
}

enum rv_err text_cache_begin(struct text_cache *c, const struct text_file *f, uint8_t *held, bool *waits,
							 struct rv_errtext *et) {
	struct text_part *p = text_cache_part(c, f);
	char path[PATH_MAX];
	*waits = false;
	p = p ? p : free_part(c);
	RV_ASSERT(c->has_manifest && p);
	text_cache_close_part(p);
	p->file = *f;
	p->bytes = text_file_bytes(&c->manifest, f);
	p->n_ranges = text_core_ranges(p->bytes);
	if (f->kind == TEXT_SHARD)
		RV_TRY(reserve(c, p, waits, et));
	text_cache_path(c, f, ".part", path);
	p->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (p->fd < 0)
		return rv_fail_errno(et, errno, "%s", path);
	const enum rv_err e = resume(p, path, held, et);
	if (e != RV_OK)
		text_cache_close_part(p);
	return e;
}

enum rv_err text_cache_write(struct text_cache *c, const struct text_file *f, uint32_t range, const void *bytes,
							 size_t n, uint64_t check, struct rv_errtext *et) {
	const struct text_part *p = text_cache_part(c, f);
	RV_ASSERT(p && range < p->n_ranges && n == text_core_range_bytes(p->bytes, range) && check != 0);
	if (rv_write_at(p->fd, bytes, n, (uint64_t)range * TEXT_RANGE_BYTES) &&
		rv_write_at(p->fd, &check, sizeof check, p->bytes + (uint64_t)range * CHECK_BYTES))
		return RV_OK;
	char path[PATH_MAX];
	const int why = errno;
	text_cache_path(c, f, ".part", path);
	return rv_fail_errno(et, why, "%s", path);
}

/* Reads what a file must hash to from the page above it, or the manifest. */
static enum rv_err expected_hash(const struct text_cache *c, const struct text_file *f, struct rv_hash *out,
								 struct rv_errtext *et) {
	struct index_page page;
	const struct index_shape shape = index_shape_of(&c->manifest);
	if (f->kind == TEXT_SHARD)
		return index_shard_hash(c->dir, &c->manifest, f->i, out, et);
	if (f->level == shape.levels - 1) {
		*out = c->manifest.root;
		return RV_OK;
	}
	RV_TRY(index_page_read(c->dir, &c->manifest, f->level + 1, f->i / INDEX_FAN, &page, et));
	*out = page.hash[f->i % INDEX_FAN];
	return RV_OK;
}

/* Cuts the table of hashes off, checks the bytes, and gives them their name. */
static enum rv_err make_whole(const struct text_cache *c, const struct text_part *p, struct rv_errtext *et) {
	char part[PATH_MAX], path[PATH_MAX];
	struct rv_hash expected, got;
	text_cache_path(c, &p->file, ".part", part);
	text_cache_path(c, &p->file, "", path);
	if (expected_hash(c, &p->file, &expected, et) != RV_OK)
		return RV_E_NOTFOUND;
	if (ftruncate(p->fd, (off_t)p->bytes) != 0)
		return rv_fail_errno(et, errno, "%s", part);
	RV_TRY(file_hash_open(p->fd, part, p->bytes, &got, et));
	if (!rv_hash_equal(&got, &expected))
		return rv_fail(et, RV_E_CORRUPT, "%s: what was fetched does not have the hash that the manifest leads to",
					   path);
	return fsync(p->fd) == 0 && rename(part, path) == 0 ? RV_OK : rv_fail_errno(et, errno, "%s", path);
}

enum rv_err text_cache_finish(struct text_cache *c, const struct text_file *f, struct rv_errtext *et) {
	struct text_part *p = text_cache_part(c, f);
	char path[PATH_MAX];
	RV_ASSERT(p);
	const enum rv_err err = make_whole(c, p, et);
	text_cache_close_part(p);
	if (err == RV_OK)
		return RV_OK;
	if (f->kind == TEXT_SHARD)
		text_shelf_drop(&c->shelf, f->i);
	text_cache_path(c, f, ".part", path);
	(void)unlink(path);
	return err;
}

void text_cache_leave(struct text_cache *c, const struct text_file *f) {
	struct text_part *p = text_cache_part(c, f);
	if (p)
		text_cache_close_part(p);
}
