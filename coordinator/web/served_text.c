/* served_text.c: see served_text.h. */
#include "coordinator/web/served_text.h"

#include "base/assert.h"
#include "base/hex.h"
#include "train/text/published/file_names.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/published.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHECK_BYTES = 1 << 20, STATE_BITS = 2, STATES_PER_BYTE = 8 / STATE_BITS };

/* The check that is under way. */
struct check {
	struct served_file file; /* fd -1: none */
	struct rv_hasher hasher;
	uint64_t at;
};

struct served_text {
	char *dir;
	int dir_fd;
	struct manifest manifest;
	uint8_t *states; /* (n_shards / 4) enum served_state, two bits each */
	struct check check;
	uint8_t buffer[CHECK_BYTES];
};

/* ---- opening ---- */

static enum rv_err check_identity(const struct manifest *m, const char *dir, const char *data_hash,
								  struct rv_errtext *et) {
	struct rv_hash is, expected;
	char hex[2 * RV_HASH_BYTES + 1];
	RV_TRY(manifest_hash(m, &is, et));
	if (rv_hex_decode(data_hash, expected.b, sizeof expected.b) && rv_hash_equal(&is, &expected))
		return RV_OK;
	rv_hex_encode(is.b, sizeof is.b, hex);
	return rv_fail(et, RV_E_INVALID, "%s: holds another text: its data-hash is %s, the run's %s", dir, hex, data_hash);
}

static enum rv_err fill(struct served_text *t, const char *dir, const char *data_hash, struct rv_errtext *et) {
	struct published *p;
	RV_TRY(published_open(dir, &p, et));
	t->manifest = *published_manifest(p);
	published_close(p);
	RV_TRY(check_identity(&t->manifest, dir, data_hash, et));
	t->dir = strdup(dir);
	t->states = calloc((size_t)t->manifest.n_shards / STATES_PER_BYTE + 1, 1);
	t->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir_fd < 0)
		return rv_fail_errno(et, errno, "%s: open", dir);
	return t->dir && t->states ? RV_OK : rv_fail(et, RV_E_NOMEM, "%.200s: no memory", dir);
}

enum rv_err served_text_open(const char *dir, const char *data_hash, struct served_text **out, struct rv_errtext *et) {
	struct served_text *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory", dir);
	t->dir_fd = t->check.file.fd = -1;
	enum rv_err e = fill(t, dir, data_hash, et);
	if (e == RV_OK)
		*out = t;
	else
		served_text_close(t);
	return e;
}

void served_text_close(struct served_text *t) {
	if (!t)
		return;
	served_file_close(&t->check.file);
	if (t->dir_fd >= 0)
		(void)close(t->dir_fd);
	free(t->dir);
	free(t->states);
	free(t);
}

const char *served_text_dir(const struct served_text *t) {
	return t->dir;
}

/* ---- files ---- */

/* Returns the number of the shard with this name; -1: it is no shard's. */
static int64_t shard_of(const struct served_text *t, const char *name) {
	char is[32], *end;
	if (strncmp(name, "shard-", 6) != 0)
		return -1;
	const uint64_t shard = strtoull(name + 6, &end, 10);
	if (shard >= (uint64_t)t->manifest.n_shards)
		return -1;
	manifest_shard_name(shard, is);
	return strcmp(is, name) == 0 ? (int64_t)shard : -1;
}

enum rv_err served_file_open(const struct served_text *t, const char *name, struct served_file *out,
							 struct rv_errtext *et) {
	struct stat st;
	*out = (struct served_file){.fd = -1, .shard = shard_of(t, name)};
	if (!file_name_is_published(name) || (out->shard < 0 && strncmp(name, "shard-", 6) == 0))
		return rv_fail(et, RV_E_NOTFOUND, "the run's text has no file %.64s", name);
	out->fd = openat(t->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (out->fd < 0)
		return rv_fail_errno(et, errno, "%s", name);
	if (fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode)) {
		out->bytes = (uint64_t)st.st_size;
		return RV_OK;
	}
	served_file_close(out);
	return rv_fail(et, RV_E_NOTFOUND, "%s is no file", name);
}

void served_file_close(struct served_file *f) {
	if (f->fd >= 0)
		(void)close(f->fd);
	f->fd = -1;
}

/* ---- checks ---- */

static unsigned shift_of(int64_t shard) {
	return (unsigned)(shard % STATES_PER_BYTE * STATE_BITS);
}

enum served_state served_text_state(const struct served_text *t, int64_t shard) {
	return shard < 0 ? SERVED_GOOD : (enum served_state)(t->states[shard / STATES_PER_BYTE] >> shift_of(shard) & 3);
}

static void set_state(struct served_text *t, int64_t shard, enum served_state state) {
	uint8_t *at = &t->states[shard / STATES_PER_BYTE];
	*at = (uint8_t)((*at & ~(3U << shift_of(shard))) | (unsigned)state << shift_of(shard));
}

static enum rv_err begin_check(struct served_text *t, int64_t shard, struct rv_errtext *et) {
	char name[32];
	manifest_shard_name((uint64_t)shard, name);
	RV_TRY(served_file_open(t, name, &t->check.file, et));
	t->check.at = 0;
	rv_hash_init(&t->check.hasher);
	return RV_OK;
}

/* Compares the hash of a shard that was read whole. */
static enum rv_err finish_check(struct served_text *t, struct rv_errtext *et) {
	const uint64_t shard = (uint64_t)t->check.file.shard;
	const struct rv_hash is = rv_hash_final(&t->check.hasher);
	struct rv_hash expected;
	RV_TRY(index_shard_hash(t->dir, &t->manifest, shard, &expected, et));
	if (rv_hash_equal(&is, &expected))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT,
				   "%s: shard %" PRIu64
				   " is damaged: it is not served; `rivulet data verify` names all that are, to be copied again",
				   t->dir, shard);
}

/* Reads a part. *ended: that was the last. */
static enum rv_err read_part(struct served_text *t, bool *ended, struct rv_errtext *et) {
	struct check *c = &t->check;
	const ssize_t n = pread(c->file.fd, t->buffer, sizeof t->buffer, (off_t)c->at);
	if (n < 0)
		return rv_fail_errno(et, errno, "%s: shard %" PRId64, t->dir, c->file.shard);
	rv_hash_update(&c->hasher, t->buffer, (size_t)n);
	c->at += (uint64_t)n;
	*ended = n == 0 || c->at >= c->file.bytes;
	return *ended ? finish_check(t, et) : RV_OK;
}

enum rv_err served_text_check(struct served_text *t, int64_t shard, struct rv_errtext *et) {
	struct check *c = &t->check;
	bool ended = false;
	RV_ASSERT(shard >= 0 && shard < t->manifest.n_shards);
	const int64_t under_way = c->file.fd >= 0 ? c->file.shard : shard;
	enum rv_err e = c->file.fd >= 0 ? RV_OK : begin_check(t, shard, et);
	if (e == RV_OK)
		e = read_part(t, &ended, et);
	if (e == RV_OK && !ended)
		return RV_OK;
	set_state(t, under_way, e == RV_OK ? SERVED_GOOD : SERVED_DAMAGED);
	served_file_close(&c->file);
	return e;
}
