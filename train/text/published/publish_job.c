/* publish_job.c: tokenize_job writes the shards; here they are hashed and logged one by one, and
 * indexed at the end. */
#include "train/text/published/publish_job.h"

#include "base/file.h"
#include "train/text/published/file_hash.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/publish_log.h"
#include "train/text/published/publish_repair.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECHECKED = 64 /* shards whose contents are read again after a restart: those written last */ };

struct job {
	const struct publish_config *c;
	struct publish_log log;
	struct tokenize_state at;
};

static void path_in(const struct job *j, const char *name, char path[static PATH_MAX]) {
	(void)snprintf(path, PATH_MAX, "%s/%s", j->c->out, name);
}

static bool has_file(const struct job *j, const char *name) {
	char path[PATH_MAX];
	path_in(j, name, path);
	return access(path, F_OK) == 0;
}

static void remove_file(const struct job *j, const char *name) {
	char path[PATH_MAX];
	path_in(j, name, path);
	(void)unlink(path);
}

/* ---- what is whole stays ---- */

/* Reports whether shard i is as record `r` says; contents only of those written last. */
static bool is_as_logged(const struct job *j, uint64_t i, const struct publish_record *r) {
	char path[PATH_MAX], name[32];
	struct stat st;
	struct rv_hash hash;
	manifest_shard_name(i, name);
	path_in(j, name, path);
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != r->bytes)
		return false;
	if (i + RECHECKED < j->at.shards)
		return true;
	return file_hash(path, &hash, NULL) == RV_OK && rv_hash_equal(&hash, &r->hash);
}

/* Counts the shards at the start that are as they were written; *last is the record of the last. */
static uint64_t count_whole(const struct job *j, struct publish_record *last) {
	struct publish_record r;
	uint64_t n = 0;
	*last = (struct publish_record){0};
	while (n < j->at.shards && publish_log_get(&j->log, n, &r, NULL) == RV_OK && is_as_logged(j, n, &r)) {
		*last = r;
		n++;
	}
	return n;
}

/* Sets the progress back to the last shard before one that is not as it was written. */
static enum rv_err keep_whole(struct job *j, const struct rv_hash *made_of, struct rv_errtext *et) {
	struct publish_record last;
	const uint64_t shard_tokens = (uint64_t)j->c->stated->shard_tokens;
	if (tokenize_state_read(j->c->out, &j->at, NULL) != RV_OK || !rv_hash_equal(&j->at.made_of, made_of))
		return RV_OK; /* tokenize_job_run starts, or says what is wrong */
	uint64_t n = count_whole(j, &last);
	if (n == j->at.shards)
		return RV_OK;
	j->at = (struct tokenize_state){
		.made_of = j->at.made_of, .shards = n, .tokens = n * shard_tokens, .block = last.block, .skip = last.skip};
	return tokenize_state_write(j->c->out, &j->at, et);
}

static bool is_temporary(const char *name) {
	static const char *const patterns[] = {"shard-*.bin.tmp-??????", "index-*.hashes.tmp-??????",
										   "manifest.json.tmp-??????", "tokens.json.tmp-??????",
										   "tokenizer.*.tmp-??????"};
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/* Removes the unfinished files of a killed job. */
static void remove_temporaries(const struct job *j) {
	DIR *dir = opendir(j->c->out);
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (is_temporary(d->d_name))
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
}

/* ---- the shards ---- */

static enum rv_err on_shard(void *ctx, const char *path, const struct tokenize_state *at, struct rv_errtext *et) {
	struct job *j = ctx;
	struct publish_record r = {.block = at->block, .skip = at->skip};
	struct stat st;
	if (stat(path, &st) != 0)
		return rv_fail_errno(et, errno, "%s: stat", path);
	r.bytes = (uint64_t)st.st_size;
	RV_TRY(file_hash(path, &r.hash, et));
	return publish_log_put(&j->log, at->shards - 1, &r, et);
}

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	const struct job *j = ctx;
	return !j->c->tick || j->c->tick(j->c->ctx, bytes_done, shards);
}

/* Names the job by what it is made of, and differently from `rivulet tokenize`, whose directories
 * are then refused. */
static enum rv_err name_job(struct tokenize_config *t, struct rv_errtext *et) {
	struct rv_hash made_of;
	RV_TRY(tokenize_made_of(t, &made_of, et));
	struct rv_hasher h = rv_hasher_of("rivulet publish");
	rv_hash_update(&h, made_of.b, sizeof made_of.b);
	t->made_of = rv_hash_final(&h);
	return RV_OK;
}

static enum rv_err write_shards(struct job *j, struct rv_errtext *et) {
	const struct publish_config *c = j->c;
	struct tokenize_config t = {.tokenizer = c->tokenizer,
								.blocks = c->blocks,
								.out = c->out,
								.prefix = "shard",
								.separator =
									c->stated->separator < 0 ? TOKENIZER_NO_TOKEN : (uint32_t)c->stated->separator,
								.shard_tokens = (uint64_t)c->stated->shard_tokens,
								.threads = c->threads,
								.on_shard = on_shard,
								.tick = tick,
								.ctx = j};
	RV_TRY(name_job(&t, et));
	RV_TRY(keep_whole(j, &t.made_of, et));
	return tokenize_job_run(&t, &j->at, et);
}

/* ---- what names them ---- */

static enum rv_err logged_hash(void *ctx, uint64_t shard, struct rv_hash *out, struct rv_errtext *et) {
	const struct job *j = ctx;
	struct publish_record r;
	RV_TRY(publish_log_get(&j->log, shard, &r, et));
	*out = r.hash;
	return RV_OK;
}

/* Copies the tokenizer's file, which must still be the one that was opened. */
static enum rv_err copy_tokenizer(const struct job *j, struct manifest *m, struct rv_errtext *et) {
	const struct publish_config *c = j->c;
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t n;
	if (!c->tokenizer_file)
		return RV_OK;
	const bool is_json = strcmp(tokenizer_kind(c->tokenizer), "huggingface") == 0;
	(void)snprintf(m->tokenizer_file, sizeof m->tokenizer_file, "tokenizer.%s", is_json ? "json" : "tiktoken");
	m->tokenizer_hash = *tokenizer_hash(c->tokenizer);
	RV_TRY(rv_file_read(c->tokenizer_file, TOKENIZER_MAX_FILE_BYTES, &bytes, &n, et));
	const struct rv_hash hash = rv_hash_of(bytes, n);
	path_in(j, m->tokenizer_file, path);
	enum rv_err e = rv_hash_equal(&hash, &m->tokenizer_hash)
						? rv_file_write_atomic(path, bytes, n, 0644, et)
						: rv_fail(et, RV_E_INVALID, "%s changed while it was used: start again", c->tokenizer_file);
	free(bytes);
	return e;
}

static enum rv_err write_index(struct job *j, struct manifest *m, struct rv_errtext *et) {
	if (j->at.tokens == 0)
		return rv_fail(et, RV_E_RANGE, "%s: the text has no tokens: nothing to publish", j->c->out);
	m->n_tokens = (int64_t)j->at.tokens;
	m->n_shards = (int64_t)j->at.shards;
	RV_TRY(copy_tokenizer(j, m, et));
	RV_TRY(index_pages_write(j->c->out, m, logged_hash, j, et));
	return manifest_write(j->c->out, m, et);
}

/* Checks what the publisher states before the work, not after it. */
static enum rv_err check_stated(const struct manifest *stated, struct rv_errtext *et) {
	struct manifest m = *stated;
	m.n_shards = 1;
	m.n_tokens = 1;
	return manifest_check(&m, et);
}

static enum rv_err run(struct job *j, struct manifest *m, struct rv_errtext *et) {
	RV_TRY(write_shards(j, et));
	RV_TRY(write_index(j, m, et));
	remove_file(j, TOKENIZE_STATE_NAME);
	remove_file(j, PUBLISH_LOG_NAME);
	return RV_OK;
}

/* Repairs a finished text, or refuses it. */
static enum rv_err run_finished(const struct job *j, struct manifest *out, struct rv_errtext *et) {
	uint64_t repaired = 0;
	remove_file(j, PUBLISH_LOG_NAME); /* of a job that was killed at its last step */
	if (j->c->repaired)
		RV_TRY(publish_repair(j->c, out, &repaired, et));
	if (repaired > 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "%s holds a text that is published already%s: `rivulet data inspect` shows it; choose another --out",
				   j->c->out, j->c->repaired ? ", and all of its shards are whole" : "");
}

enum rv_err publish_job_run(const struct publish_config *c, struct manifest *out, uint64_t *shards,
							struct rv_errtext *et) {
	struct job j = {.c = c, .log = {.fd = -1}};
	*out = *c->stated;
	*shards = 0;
	out->vocab = tokenizer_vocab(c->tokenizer);
	RV_TRY(check_stated(out, et));
	remove_temporaries(&j);
	if (has_file(&j, MANIFEST_NAME) && !has_file(&j, TOKENIZE_STATE_NAME))
		return run_finished(&j, out, et);
	enum rv_err e = publish_log_open(&j.log, c->out, et);
	if (e == RV_OK)
		e = run(&j, out, et);
	*shards = j.at.shards;
	publish_log_close(&j.log);
	return e;
}
