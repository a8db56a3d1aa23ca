/* published.c: see published.h. A shard is opened for each read: a sequence takes a few system
 * calls, and no table grows with the text. */
#include "train/text/published/published.h"

#include "base/assert.h"
#include "train/text/published/file_hash.h"
#include "train/text/published/index_pages.h"
#include "train/text/tokenizer/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GET_TRIES = 3 }; /* a disk that damages what was just written ends the reading */

struct published {
	char *dir;
	struct manifest manifest;
	struct published_missing missing;
	atomic_uchar *checked; /* (n_shards / 8) a bit for each shard */
};

static enum rv_err fill(struct published *p, const char *dir, struct rv_errtext *et) {
	struct index_page top;
	RV_TRY(manifest_read(dir, &p->manifest, et));
	RV_TRY(index_page_read(dir, &p->manifest, index_shape_of(&p->manifest).levels - 1, 0, &top, et));
	p->dir = strdup(dir);
	p->checked = calloc((size_t)p->manifest.n_shards / 8 + 1, sizeof *p->checked);
	return p->dir && p->checked ? RV_OK : rv_fail(et, RV_E_NOMEM, "%.200s: no memory", dir);
}

enum rv_err published_open(const char *dir, struct published **out, struct rv_errtext *et) {
	struct published *p = calloc(1, sizeof *p);
	*out = NULL;
	if (!p)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory", dir);
	enum rv_err e = fill(p, dir, et);
	if (e == RV_OK)
		*out = p;
	else
		published_close(p);
	return e;
}

void published_close(struct published *p) {
	if (!p)
		return;
	free(p->dir);
	free(p->checked);
	free(p);
}

const struct manifest *published_manifest(const struct published *p) {
	return &p->manifest;
}

void published_on_missing(struct published *p, const struct published_missing *m) {
	p->missing = *m;
}

/* ---- a shard ---- */

static void shard_path(const struct published *p, uint64_t shard, char path[static PATH_MAX]) {
	char name[32];
	manifest_shard_name(shard, name);
	(void)snprintf(path, PATH_MAX, "%s/%s", p->dir, name);
}

static enum rv_err check_hash(const struct published *p, uint64_t shard, int fd, const char *path,
							  struct rv_errtext *et) {
	struct rv_hash expected, got;
	RV_TRY(index_shard_hash(p->dir, &p->manifest, shard, &expected, et));
	RV_TRY(file_hash_open(fd, path, manifest_shard_bytes(&p->manifest, shard), &got, et));
	return rv_hash_equal(&got, &expected)
			   ? RV_OK
			   : rv_fail(et, RV_E_CORRUPT,
						 "%s: damaged, it does not have the hash of its index page; fetch or copy it again", path);
}

static bool is_checked(const struct published *p, uint64_t shard) {
	return atomic_load_explicit(&p->checked[shard / 8], memory_order_acquire) >> shard % 8 & 1;
}

static void mark_checked(const struct published *p, uint64_t shard) {
	atomic_fetch_or_explicit(&p->checked[shard / 8], (unsigned char)(1U << shard % 8), memory_order_release);
}

/* What was checked is another file once somebody gets the shard anew. */
static void unmark_checked(const struct published *p, uint64_t shard) {
	atomic_fetch_and_explicit(&p->checked[shard / 8], (unsigned char)~(1U << shard % 8), memory_order_acq_rel);
}

static enum rv_err read_present(const struct published *p, struct manifest_place at, size_t n, int32_t *out,
								struct rv_errtext *et) {
	char path[PATH_MAX];
	struct shard s;
	shard_path(p, at.shard, path);
	if (!is_checked(p, at.shard))
		RV_TRY(published_check_shard(p, at.shard, et));
	RV_TRY(shard_open(&s, path, et));
	enum rv_err e = RV_OK;
	if (s.n_tokens != manifest_shard_tokens(&p->manifest, at.shard))
		e = rv_fail(et, RV_E_CORRUPT, "%s: it has %llu tokens, the manifest says %llu", path,
					(unsigned long long)s.n_tokens, (unsigned long long)manifest_shard_tokens(&p->manifest, at.shard));
	if (e == RV_OK)
		e = shard_read(&s, (uint32_t)p->manifest.vocab, at.token, n, out, et);
	shard_close(&s);
	return e;
}

static enum rv_err read_shard(const struct published *p, struct manifest_place at, size_t n, int32_t *out,
							  struct rv_errtext *et) {
	enum rv_err e = read_present(p, at, n, out, et);
	for (int i = 0; i < GET_TRIES && p->missing.get && (e == RV_E_NOTFOUND || e == RV_E_CORRUPT); i++) {
		unmark_checked(p, at.shard);
		RV_TRY(p->missing.get(p->missing.ctx, at.shard, et));
		e = read_present(p, at, n, out, et);
	}
	return e;
}

typedef enum rv_err (*shard_reader)(const struct published *p, struct manifest_place at, size_t n, int32_t *out,
									struct rv_errtext *et);

static enum rv_err read_by(const struct published *p, shard_reader read, uint64_t begin, size_t n, int32_t *out,
						   struct rv_errtext *et) {
	RV_ASSERT(begin <= (uint64_t)p->manifest.n_tokens && n <= (uint64_t)p->manifest.n_tokens - begin);
	while (n > 0) {
		const struct manifest_place at = manifest_place(&p->manifest, begin);
		const uint64_t left = manifest_shard_tokens(&p->manifest, at.shard) - at.token;
		const size_t part = n < left ? n : (size_t)left;
		RV_TRY(read(p, at, part, out, et));
		begin += part;
		out += part;
		n -= part;
	}
	return RV_OK;
}

enum rv_err published_read(const struct published *p, uint64_t begin, size_t n, int32_t *out, struct rv_errtext *et) {
	return read_by(p, read_shard, begin, n, out, et);
}

enum rv_err published_read_present(const struct published *p, uint64_t begin, size_t n, int32_t *out,
								   struct rv_errtext *et) {
	return read_by(p, read_present, begin, n, out, et);
}

/* ---- checks ---- */

enum rv_err published_check_shard(const struct published *p, uint64_t shard, struct rv_errtext *et) {
	char path[PATH_MAX];
	shard_path(p, shard, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: open", path);
	enum rv_err e = check_hash(p, shard, fd, path, et);
	(void)close(fd);
	if (e == RV_OK)
		mark_checked(p, shard);
	return e;
}

enum rv_err published_check_page(const struct published *p, int level, uint64_t i, struct rv_errtext *et) {
	struct index_page page;
	return index_page_read(p->dir, &p->manifest, level, i, &page, et);
}

enum rv_err published_check_tokenizer(const struct published *p, struct rv_errtext *et) {
	char path[PATH_MAX];
	struct rv_hash got;
	if (p->manifest.tokenizer_file[0] == '\0')
		return RV_OK;
	(void)snprintf(path, sizeof path, "%s/%s", p->dir, p->manifest.tokenizer_file);
	RV_TRY(file_hash(path, &got, et));
	return rv_hash_equal(&got, &p->manifest.tokenizer_hash)
			   ? RV_OK
			   : rv_fail(et, RV_E_CORRUPT, "%s: damaged, it does not have the manifest's tokenizer_hash", path);
}
