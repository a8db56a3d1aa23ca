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

/* ---- the table of shards ---- */

/* Returns the place of a shard, or where it would stand. */
static size_t place_of(const struct text_cache *c, uint64_t shard) {
	size_t low = 0, high = c->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (c->entries[middle].shard < shard)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct text_entry *text_cache_entry(struct text_cache *c, uint64_t shard) {
	const size_t at = place_of(c, shard);
	return at < c->n && c->entries[at].shard == shard ? &c->entries[at] : NULL;
}

bool text_cache_insert(struct text_cache *c, uint64_t shard, uint64_t bytes, uint64_t used) {
	if (c->n == c->cap) {
		const size_t cap = c->cap ? 2 * c->cap : 64;
		struct text_entry *entries = realloc(c->entries, cap * sizeof *entries);
		if (!entries)
			return false;
		c->entries = entries;
		c->cap = cap;
	}
	const size_t at = place_of(c, shard);
	memmove(&c->entries[at + 1], &c->entries[at], (c->n - at) * sizeof *c->entries);
	c->entries[at] = (struct text_entry){.shard = shard, .bytes = bytes, .used = used};
	c->n++;
	c->used_bytes += bytes;
	return true;
}

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

void text_cache_forget(struct text_cache *c, struct text_entry *e) {
	c->used_bytes -= e->bytes;
	c->n--;
	memmove(e, e + 1, (size_t)(&c->entries[c->n] - e) * sizeof *e);
}

void text_cache_evict(struct text_cache *c, struct text_entry *e) {
	const struct text_file f = {.kind = TEXT_SHARD, .i = e->shard};
	char path[PATH_MAX];
	struct text_part *p = text_cache_part(c, &f);
	if (p)
		text_cache_close_part(p);
	text_cache_path(c, &f, "", path);
	(void)unlink(path);
	text_cache_path(c, &f, ".part", path);
	(void)unlink(path);
	text_cache_forget(c, e);
}

static struct text_entry *least_needed(struct text_cache *c) {
	struct text_entry *least = NULL;
	for (size_t i = 0; i < c->n; i++)
		if (!least || c->entries[i].used < least->used)
			least = &c->entries[i];
	return least;
}

bool text_cache_room(struct text_cache *c, uint64_t bytes, uint64_t used) {
	while (c->used_bytes + bytes > c->quota_bytes) {
		struct text_entry *least = least_needed(c);
		if (!least || least->used >= used)
			return false;
		text_cache_evict(c, least);
	}
	return true;
}

/* ---- opening ---- */

static enum rv_err take_name(struct text_cache *c, DIR *d, const char *name, struct rv_errtext *et) {
	uint64_t shard;
	bool is_part;
	struct stat st;
	if (!text_file_parse_shard(name, &shard, &is_part) || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return RV_OK;
	const uint64_t bytes = (uint64_t)st.st_size, used = st.st_mtime > 0 ? (uint64_t)st.st_mtime : 0;
	if (used >= c->clock)
		c->clock = used + 1;
	struct text_entry *e = text_cache_entry(c, shard);
	if (e) {
		e->bytes += bytes;
		c->used_bytes += bytes;
		return RV_OK;
	}
	return text_cache_insert(c, shard, bytes, used) ? RV_OK
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
	const uint64_t shard = manifest_shard_bytes(m, 0);
	return c->quota_bytes >= LEAST_SHARDS * shard
			   ? RV_OK
			   : rv_fail(et, RV_E_RANGE,
						 "--data-cache of %" PRIu64 " bytes: this text has shards of %" PRIu64
						 " bytes, and two must fit: at least %" PRIu64,
						 c->quota_bytes, shard, LEAST_SHARDS * shard);
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
	(void)text_cache_room(c, 0, UINT64_MAX);
	return RV_OK;
}

enum rv_err text_cache_open(const char *dir, const struct rv_hash *data_hash, uint64_t quota_bytes,
							struct text_cache **out, struct rv_errtext *et) {
	struct text_cache *c = calloc(1, sizeof *c);
	*out = NULL;
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory", dir);
	c->lock = -1;
	c->clock = 1;
	c->data_hash = *data_hash;
	c->quota_bytes = quota_bytes;
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
	free(c->entries);
	free(c->dir);
	free(c);
}

const char *text_cache_dir(const struct text_cache *c) {
	return c->dir;
}

uint64_t text_cache_used(const struct text_cache *c) {
	return c->used_bytes;
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
	return !text_cache_entry(c, shard) || access(path, R_OK) != 0;
}

void text_cache_prefer(struct text_cache *c, const uint64_t *shards, int n) {
	RV_ASSERT(n >= 0 && n <= TEXT_CACHE_WANTED);
	c->clock += (uint64_t)n;
	c->n_wanted = n;
	for (int i = 0; i < n; i++) {
		struct text_entry *e = text_cache_entry(c, shards[i]);
		c->wanted[i] = shards[i];
		if (e)
			e->used = c->clock - (uint64_t)i;
	}
}

uint64_t text_cache_need(const struct text_cache *c, uint64_t shard) {
	for (int i = 0; i < c->n_wanted; i++)
		if (c->wanted[i] == shard)
			return c->clock - (uint64_t)i;
	return 0;
}

void text_cache_verify(struct text_cache *c, uint64_t shard) {
	const struct text_file f = {.kind = TEXT_SHARD, .i = shard};
	struct text_entry *e = text_cache_entry(c, shard);
	struct rv_hash expected, got;
	char path[PATH_MAX];
	if (!e || text_cache_part(c, &f) || index_shard_hash(c->dir, &c->manifest, shard, &expected, NULL) != RV_OK)
		return;
	text_cache_path(c, &f, "", path);
	if (file_hash(path, &got, NULL) != RV_OK || !rv_hash_equal(&got, &expected))
		text_cache_evict(c, e);
}
