/* publish_repair.c: see publish_repair.h. */
#include "train/text/published/publish_repair.h"

#include "base/file.h"
#include "train/text/published/file_hash.h"
#include "train/text/published/index_pages.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct repair {
	const struct publish_config *c;
	const struct manifest *m;
	char beside[PATH_MAX]; /* the directory in which shards are made again */
	bool *damaged;         /* (m->n_shards) */
	uint64_t left, done;   /* damaged shards that are not, and that are, in their places again */
};

static void path_of(const struct repair *r, uint64_t shard, char path[static PATH_MAX]) {
	char name[32];
	manifest_shard_name(shard, name);
	(void)snprintf(path, PATH_MAX, "%s/%s", r->c->out, name);
}

/* ---- what is damaged ---- */

static enum rv_err look_at(struct repair *r, uint64_t shard, struct rv_errtext *et) {
	char path[PATH_MAX];
	struct rv_hash hash, expected;
	enum rv_err e = index_shard_hash(r->c->out, r->m, shard, &expected, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "it cannot be repaired: publish into another --out");
	path_of(r, shard, path);
	r->damaged[shard] = file_hash(path, &hash, NULL) != RV_OK || !rv_hash_equal(&hash, &expected);
	r->left += r->damaged[shard];
	return RV_OK;
}

static enum rv_err look(struct repair *r, struct rv_errtext *et) {
	for (uint64_t i = 0; i < (uint64_t)r->m->n_shards; i++) {
		RV_TRY(look_at(r, i, et));
		if (r->c->tick && !r->c->tick(r->c->ctx, 0, i + 1))
			return rv_fail(et, RV_E_CANCELLED, "stopped while %s was checked", r->c->out);
	}
	return RV_OK;
}

/* ---- making shards again ---- */

static enum rv_err other_text(const struct repair *r, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID,
				   "%s holds a published text with damaged or missing shards (%" PRIu64
				   "), and the files, tokenizer or options given now make another one: give those that it was made "
				   "of, or another --out",
				   r->c->out, r->left);
}

static enum rv_err put_in_place(struct repair *r, const char *made, uint64_t shard, struct rv_errtext *et) {
	char path[PATH_MAX];
	path_of(r, shard, path);
	if (rename(made, path) != 0)
		return rv_fail_errno(et, errno, "%s: rename", path);
	RV_TRY(rv_file_sync_parent(path, et));
	r->left--;
	r->done++;
	if (r->c->repaired)
		r->c->repaired(r->c->ctx, shard);
	return RV_OK;
}

static enum rv_err on_shard(void *ctx, const char *path, const struct tokenize_state *at, struct rv_errtext *et) {
	struct repair *r = ctx;
	const uint64_t shard = at->shards - 1;
	struct rv_hash hash, expected;
	if (shard >= (uint64_t)r->m->n_shards)
		return other_text(r, et);
	RV_TRY(index_shard_hash(r->c->out, r->m, shard, &expected, et));
	RV_TRY(file_hash(path, &hash, et));
	if (!rv_hash_equal(&hash, &expected))
		return other_text(r, et);
	if (r->damaged[shard])
		RV_TRY(put_in_place(r, path, shard, et));
	else
		(void)unlink(path);
	return r->left > 0 ? RV_OK : rv_fail(et, RV_E_OVER, "all are in their places");
}

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	const struct repair *r = ctx;
	return !r->c->tick || r->c->tick(r->c->ctx, bytes_done, shards);
}

/* Removes the directory in which shards are made, also that of a killed repair. */
static void remove_beside(const struct repair *r) {
	DIR *dir = opendir(r->beside);
	for (struct dirent *d; dir && (d = readdir(dir));)
		(void)unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
	(void)rmdir(r->beside);
}

static enum rv_err make_again(struct repair *r, struct rv_errtext *et) {
	const struct publish_config *c = r->c;
	struct tokenize_state at;
	struct rv_errtext why = {0};
	struct tokenize_config t = {.tokenizer = c->tokenizer,
								.blocks = c->blocks,
								.out = r->beside,
								.prefix = "shard",
								.separator =
									c->stated->separator < 0 ? TOKENIZER_NO_TOKEN : (uint32_t)c->stated->separator,
								.shard_tokens = (uint64_t)c->stated->shard_tokens,
								.threads = c->threads,
								.on_shard = on_shard,
								.tick = tick,
								.ctx = r};
	if (c->stated->shard_tokens != r->m->shard_tokens)
		return other_text(r, et);
	RV_TRY(tokenize_made_of(&t, &t.made_of, et));
	remove_beside(r);
	RV_TRY(rv_dir_make(r->beside, 0755, et));
	const enum rv_err e = tokenize_job_run(&t, &at, &why);
	remove_beside(r);
	if (e == RV_OK && r->left > 0)
		return other_text(r, et);
	return e == RV_OK || e == RV_E_OVER ? RV_OK : rv_fail(et, e, "%s", why.text);
}

enum rv_err publish_repair(const struct publish_config *c, struct manifest *m, uint64_t *n, struct rv_errtext *et) {
	struct repair r = {.c = c, .m = m};
	*n = 0;
	RV_TRY(manifest_read(c->out, m, et));
	if (snprintf(r.beside, sizeof r.beside, "%s/repair", c->out) >= (int)sizeof r.beside)
		return rv_fail(et, RV_E_RANGE, "%.100s...: the path is too long", c->out);
	r.damaged = calloc((size_t)m->n_shards, sizeof *r.damaged);
	if (!r.damaged)
		return rv_fail(et, RV_E_NOMEM, "no memory to check %" PRId64 " shards", m->n_shards);
	enum rv_err e = look(&r, et);
	if (e == RV_OK && r.left > 0)
		e = make_again(&r, et);
	*n = r.done;
	free(r.damaged);
	return e;
}
