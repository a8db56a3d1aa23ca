/* token_cache.c: finds, makes or waits for an entry, and keeps the cache within its bounds. */
#include "train/text/token_cache.h"

#include "base/file.h"
#include "base/hex.h"
#include "train/text/documents/document_source.h"
#include "train/text/documents/documents.h"
#include "train/text/token_cache_trim.h"
#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { KEY_BYTES = 16, WAIT_NS = 200 * 1000 * 1000 };

/* The entry of one text and one tokenizer. */
struct entry {
	const struct token_cache *cache;
	const struct data_files *text;
	struct document_source documents;
	struct rv_hash made_of;
	char dir[400];
};

static bool report(const struct entry *x, const char *what, uint64_t done_bytes) {
	const struct token_cache *c = x->cache;
	return !c->progress || c->progress(c->progress_ctx, what, done_bytes, x->text->bytes);
}

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	(void)shards;
	return report(ctx, "tokenize", bytes_done);
}

static struct tokenize_config job_of(struct entry *x) {
	const struct token_cache *c = x->cache;
	return (struct tokenize_config){.tokenizer = c->tokenizer,
									.blocks = &x->documents.source,
									.out = x->dir,
									.made_of = x->made_of,
									.separator = tokenizer_end_of_text(c->tokenizer),
									.shard_tokens = c->shard_tokens > 0 ? c->shard_tokens : TOKEN_CACHE_SHARD_TOKENS,
									.threads = block_lanes_choose(c->threads),
									.tick = tick,
									.ctx = x};
}

static enum rv_err open_documents(struct entry *x, struct rv_errtext *et) {
	document_source_release(&x->documents);
	return document_source_open(&x->documents, x->text, x->cache->field ? x->cache->field : DOCUMENTS_FIELD_DEFAULT,
								et);
}

static enum rv_err name_entry(struct entry *x, struct rv_errtext *et) {
	char hex[2 * KEY_BYTES + 1];
	const struct tokenize_config job = job_of(x);
	RV_TRY(tokenize_made_of(&job, &x->made_of, et));
	rv_hex_encode(x->made_of.b, KEY_BYTES, hex);
	int n = snprintf(x->dir, sizeof x->dir, "%s/" TOKEN_CACHE_PREFIX "%s", x->cache->dir, hex);
	return n < (int)sizeof x->dir
			   ? RV_OK
			   : rv_fail(et, RV_E_RANGE, "the cache directory %.200s...: its path is too long", x->cache->dir);
}

static bool is_finished(const struct entry *x) {
	struct tokenize_state s;
	return tokenize_state_read(x->dir, &s, NULL) == RV_OK && s.done && rv_hash_equal(&s.made_of, &x->made_of);
}

/* Waits while another process makes the entry. */
static enum rv_err lock_entry(const struct entry *x, int *lock, struct rv_errtext *et) {
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	enum rv_err e;
	while ((e = rv_dir_lock(x->dir, lock, et)) == RV_E_BUSY) {
		if (!report(x, "wait for another process that tokenizes this text", 0))
			return rv_fail(et, RV_E_CANCELLED, "stopped while another process tokenizes the text");
		(void)nanosleep(&pause, NULL);
	}
	return e;
}

static enum rv_err make_entry(struct entry *x, struct rv_errtext *et) {
	int lock;
	struct tokenize_state done;
	RV_TRY(rv_dir_make(x->dir, 0755, et));
	RV_TRY(lock_entry(x, &lock, et));
	const struct tokenize_config job = job_of(x);
	enum rv_err e = is_finished(x) ? RV_OK : tokenize_job_run(&job, &done, et);
	rv_dir_unlock(lock);
	if (e == RV_E_CANCELLED)
		return rv_fail(et, e, "stopped while the text was made into tokens; the next start resumes there");
	return e;
}

/* Opens the entry, made if need be, and records its use in the time of the state's file. */
static enum rv_err use_entry(struct entry *x, uint32_t vocab, struct token_source *out, struct rv_errtext *et) {
	char path[PATH_MAX];
	if (!is_finished(x))
		RV_TRY(make_entry(x, et));
	(void)snprintf(path, sizeof path, "%s/" TOKENIZE_STATE_NAME, x->dir);
	(void)utimensat(AT_FDCWD, path, NULL, 0);
	return token_source_open(out, x->dir, vocab, et);
}

/* Opens the entry, and makes it again, once, if it is damaged or incomplete. */
static enum rv_err open_entry(struct entry *x, uint32_t vocab, struct token_source *out, struct rv_errtext *et) {
	RV_TRY(open_documents(x, et));
	RV_TRY(name_entry(x, et));
	struct rv_errtext why = {0};
	enum rv_err e = use_entry(x, vocab, out, &why);
	if (e == RV_E_CORRUPT || e == RV_E_PROTOCOL || e == RV_E_INVALID || e == RV_E_NOTFOUND) {
		token_cache_remove(x->dir);
		RV_TRY(open_documents(x, et)); /* they are read once */
		e = use_entry(x, vocab, out, &why);
	}
	if (e != RV_OK)
		return rv_fail(et, e, "%s", why.text);
	token_cache_trim(x->cache->dir, x->dir, x->cache->max_bytes > 0 ? x->cache->max_bytes : TOKEN_CACHE_MAX_BYTES);
	return RV_OK;
}

enum rv_err token_cache_open(const struct token_cache *c, const struct data_files *text, uint32_t vocab,
							 struct token_source *out, struct rv_errtext *et) {
	struct entry x = {.cache = c, .text = text};
	enum rv_err e = open_entry(&x, vocab, out, et);
	document_source_release(&x.documents);
	return e;
}
