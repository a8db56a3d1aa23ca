/* text_cache.c: see text_cache.h. */
#include "worker/text/text_cache_state.h"

#include "base/assert.h"
#include "base/file.h"
#include "train/text/published/file_hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST_SHARDS = 2 };

static void path_of(const struct text_cache *c, const char *name, const char *suffix, char path[static PATH_MAX]) {
	(void)snprintf(path, PATH_MAX, "%s/%s%s", c->dir, name, suffix);
}

void text_cache_path(const struct text_cache *c, const struct text_file *f, const char *suffix,
					 char path[static PATH_MAX]) {
	char name[32];
	text_file_name(f, name);
	path_of(c, name, suffix, path);
}

/* ---- files ---- */

void text_cache_close_part(struct text_part *p) {
	if (p->fd >= 0)
		(void)close(p->fd);
	p->fd = -1;
}

struct text_part *text_cache_part(struct text_cache *c, const struct text_file *f) {
	for (int i = 0; i < TEXT_CACHE_PARTS; i++)
		if (c->parts[i].fd >= 0 && text_file_id(&c->parts[i].file) == text_file_id(f))
			return &c->parts[i];
	return NULL;
}

/* The shelf has no more room for a shard: text_shelf.evict. */
static void remove_shard(void *ctx, uint64_t shard) {
	struct text_cache *c = ctx;
	const struct text_file f = {.kind = TEXT_SHARD, .i = shard};
	char path[PATH_MAX];
	struct text_part *p = text_cache_part(c, &f);
	if (p)
		text_cache_close_part(p);
	text_cache_path(c, &f, "", path);
	(void)unlink(path);
	text_cache_path(c, &f, ".part", path);
	(void)unlink(path);
}

/* ---- opening ---- */

static enum rv_err take_name(struct text_cache *c, DIR *d, const char *name, struct rv_errtext *et) {
	uint64_t shard;
	bool is_part;
	struct stat st;
	if (!text_file_parse_shard(name, &shard, &is_part) || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return RV_OK;
	const uint64_t needed = st.st_mtime > 0 ? (uint64_t)st.st_mtime : 0;
	return text_shelf_found(&c->shelf, shard, (uint64_t)st.st_size, needed)
			   ? RV_OK
			   : rv_fail(et, RV_E_NOMEM, "%s: no memory for its files", c->dir);
}

static enum rv_err scan(struct text_cache *c, struct rv_errtext *et) {
	DIR *d = opendir(c->dir);
	enum rv_err e = RV_OK;
	if (!d)
		return rv_fail_errno(et, errno, "%s", c->dir);
	for (struct dirent *at = readdir(d); at && e == RV_OK; at = readdir(d))
		e = take_name(c, d, at->d_name, et);
	(void)closedir(d);
	return e;
}

static enum rv_err check_quota(const struct text_cache *c, const struct manifest *m, struct rv_errtext *et) {
	const uint64_t shard = manifest_shard_bytes(m, 0), all = manifest_text_bytes(m);
	const uint64_t least = LEAST_SHARDS * shard < all ? LEAST_SHARDS * shard : all;
	return c->shelf.quota_bytes >= least ? RV_OK
										 : rv_fail(et, RV_E_FULL,
												   "--data-cache of %" PRIu64 " bytes: this text has shards of %" PRIu64
												   " bytes, and two must fit: at least %" PRIu64,
												   c->shelf.quota_bytes, shard, least);
}

static bool is_this_text(const struct text_cache *c, const struct manifest *m) {
	struct rv_hash hash;
	return manifest_hash(m, &hash, NULL) == RV_OK && rv_hash_equal(&hash, &c->data_hash);
}

static enum rv_err use_manifest(struct text_cache *c, const struct manifest *m, struct rv_errtext *et) {
	RV_TRY(check_quota(c, m, et));
	c->manifest = *m;
	c->has_manifest = true;
	return RV_OK;
}

static enum rv_err find_manifest(struct text_cache *c, struct rv_errtext *et) {
	struct manifest m;
	return manifest_read(c->dir, &m, NULL) == RV_OK && is_this_text(c, &m) ? use_manifest(c, &m, et) : RV_OK;
}

static enum rv_err fill(struct text_cache *c, const char *dir, struct rv_errtext *et) {
	c->dir = strdup(dir);
	if (!c->dir)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory", dir);
	RV_TRY(rv_dir_make(dir, 0755, et));
	RV_TRY(rv_dir_lock(dir, &c->lock, et));
	RV_TRY(find_manifest(c, et));
	RV_TRY(scan(c, et));
	text_shelf_fit(&c->shelf);
	return RV_OK;
}

enum rv_err text_cache_open(const char *dir, const struct rv_hash *data_hash, uint64_t quota_bytes,
							struct text_cache **out, struct rv_errtext *et) {
	struct text_cache *c = calloc(1, sizeof *c);
	*out = NULL;
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory", dir);
	c->lock = -1;
	c->data_hash = *data_hash;
	text_shelf_init(&c->shelf, quota_bytes, remove_shard, c);
	for (int i = 0; i < TEXT_CACHE_PARTS; i++)
		c->parts[i].fd = -1;
	const enum rv_err e = fill(c, dir, et);
	if (e == RV_OK)
		*out = c;
	else
		text_cache_close(c);
	return e;
}

void text_cache_close(struct text_cache *c) {
	if (!c)
		return;
	for (int i = 0; i < TEXT_CACHE_PARTS; i++)
		text_cache_close_part(&c->parts[i]);
	if (c->lock >= 0)
		rv_dir_unlock(c->lock);
	text_shelf_release(&c->shelf);
	free(c->dir);
	free(c);
}

const char *text_cache_dir(const struct text_cache *c) {
	return c->dir;
}

uint64_t text_cache_used(const struct text_cache *c) {
	return c->shelf.used_bytes;
}

/* ---- manifest and tokenizer ---- */

const struct manifest *text_cache_manifest(const struct text_cache *c) {
	return c->has_manifest ? &c->manifest : NULL;
}

enum rv_err text_cache_take_manifest(struct text_cache *c, const uint8_t *text, size_t n, struct rv_errtext *et) {
	struct manifest m;
	RV_TRY(manifest_parse(MANIFEST_NAME, text, n, &m, et));
	if (!is_this_text(c, &m))
		return rv_fail(et, RV_E_CORRUPT, MANIFEST_NAME " is of another text: it does not have the run's data-hash");
	RV_TRY(use_manifest(c, &m, et));
	return manifest_write(c->dir, &m, et);
}

const char *text_cache_lacks_tokenizer(const struct text_cache *c) {
	char path[PATH_MAX];
	struct rv_hash hash;
	if (c->manifest.tokenizer_file[0] == '\0')
		return NULL;
	path_of(c, c->manifest.tokenizer_file, "", path);
	return file_hash(path, &hash, NULL) == RV_OK && rv_hash_equal(&hash, &c->manifest.tokenizer_hash)
			   ? NULL
			   : c->manifest.tokenizer_file;
}

enum rv_err text_cache_take_tokenizer(struct text_cache *c, const uint8_t *bytes, size_t n, struct rv_errtext *et) {
	const struct rv_hash hash = rv_hash_of(bytes, n);
	char path[PATH_MAX];
	if (!rv_hash_equal(&hash, &c->manifest.tokenizer_hash))
		return rv_fail(et, RV_E_CORRUPT, "%s: it does not have the manifest's tokenizer_hash",
					   c->manifest.tokenizer_file);
	path_of(c, c->manifest.tokenizer_file, "", path);
	return rv_file_write_atomic(path, bytes, n, 0644, et);
}

/* ---- what is lacked ---- */

bool text_cache_lacks_page(struct text_cache *c, int level, uint64_t i, struct text_file *next) {
	const struct index_shape shape = index_shape_of(&c->manifest);
	struct index_page page;
	char path[PATH_MAX];
	for (int at = shape.levels - 1; at >= level; at--) {
		uint64_t number = i;
		for (int down = at; down > level; down--)
			number /= INDEX_FAN;
		if (index_page_read(c->dir, &c->manifest, at, number, &page, NULL) == RV_OK)
			continue;
		*next = (struct text_file){.kind = TEXT_PAGE, .level = at, .i = number};
		text_cache_path(c, next, "", path);
		(void)unlink(path);
		return true;
	}
	return false;
}

bool text_cache_lacks(struct text_cache *c, uint64_t shard, struct text_file *next) {
	const struct text_file f = {.kind = TEXT_SHARD, .i = shard};
	char path[PATH_MAX];
	RV_ASSERT(c->has_manifest && shard < (uint64_t)c->manifest.n_shards);
	if (text_cache_lacks_page(c, 0, shard / INDEX_FAN, next))
		return true;
	*next = f;
	text_cache_path(c, &f, "", path);
	return !text_shelf_has(&c->shelf, shard) || access(path, R_OK) != 0;
}

void text_cache_prefer(struct text_cache *c, const uint64_t *shards, int n) {
	text_shelf_prefer(&c->shelf, shards, n);
}

void text_cache_verify(struct text_cache *c, uint64_t shard) {
	const struct text_file f = {.kind = TEXT_SHARD, .i = shard};
	struct rv_hash expected, got;
	char path[PATH_MAX];
	if (!text_shelf_has(&c->shelf, shard) || text_cache_part(c, &f) ||
		index_shard_hash(c->dir, &c->manifest, shard, &expected, NULL) != RV_OK)
		return;
	text_cache_path(c, &f, "", path);
	if (file_hash(path, &got, NULL) != RV_OK || !rv_hash_equal(&got, &expected))
		text_shelf_drop(&c->shelf, shard);
}
