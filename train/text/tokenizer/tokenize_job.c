/* tokenize_job.c: encodes batches of blocks in parallel, then appends them in order. */
#include "train/text/tokenizer/tokenize_job.h"

#include "base/assert.h"
#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/shard.h"

#include <dirent.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS_PER_LANE = 16 };

struct job {
	const struct tokenize_config *c;
	struct tokenize_state at; /* progress after the last whole shard */
	struct encoder *encoders[BLOCK_LANES_MAX];
	struct token_list *encoded; /* (batch) */
	uint64_t batch, begin;      /* blocks per batch; first block of the present one */
	uint64_t skip;              /* tokens of the first block that earlier shards contain */
	struct shard_writer shard;
	bool shard_open;
};

static enum rv_err encode_part(struct job *j, int lane, const struct text_block *block, size_t from, size_t to,
							   struct token_list *ids, struct rv_errtext *et) {
	RV_ASSERT(from <= to && to <= block->n);
	if (from == to)
		return RV_OK;
	return tokenizer_encode(j->encoders[lane], block->at + from, to - from, SPECIALS_AS_TEXT, ids, et);
}

static enum rv_err encode_block(void *ctx, int lane, uint64_t index, const struct text_block *block,
								struct rv_errtext *et) {
	struct job *j = ctx;
	struct token_list *ids = &j->encoded[index - j->begin];
	size_t from = 0;
	ids->n = 0;
	if (j->c->blocks->holds_tokens)
		return token_list_append(ids, (const uint32_t *)(const void *)block->at, block->n / sizeof *ids->ids, et);
	for (uint32_t i = 0; i < block->n_begins; i++) {
		RV_TRY(encode_part(j, lane, block, from, block->begins[i], ids, et));
		if (j->c->separator != TOKENIZER_NO_TOKEN)
			RV_TRY(token_list_append(ids, &j->c->separator, 1, et));
		from = block->begins[i];
	}
	return encode_part(j, lane, block, from, block->n, ids, et);
}

static bool tick(void *ctx, uint64_t bytes_done) {
	struct job *j = ctx;
	return !j->c->tick || j->c->tick(j->c->ctx, bytes_done, j->at.shards);
}

/* Writes the path of the next shard. */
static void shard_path(const struct job *j, char path[static PATH_MAX]) {
	const char *prefix = j->c->prefix ? j->c->prefix : "tokens";
	(void)snprintf(path, PATH_MAX, "%s/%s-%06" PRIu64 ".bin", j->c->out, prefix, j->at.shards);
}

static enum rv_err open_shard(struct job *j, struct rv_errtext *et) {
	char path[PATH_MAX];
	shard_path(j, path);
	RV_TRY(shard_writer_begin(&j->shard, path, tokenizer_vocab(j->c->tokenizer), et));
	j->shard_open = true;
	return RV_OK;
}

/* Commits a whole shard; the next one begins `skip` tokens into block `block`. */
static enum rv_err close_shard(struct job *j, uint64_t block, uint64_t skip, struct rv_errtext *et) {
	RV_ASSERT(j->shard.n_tokens > 0 && j->shard.n_tokens <= j->c->shard_tokens);
	RV_ASSERT(block > j->at.block || (block == j->at.block && skip > j->at.skip));
	char path[PATH_MAX];
	shard_path(j, path);
	j->shard_open = false;
	RV_TRY(shard_writer_commit(&j->shard, et));
	j->at.shards++;
	j->at.tokens += j->shard.n_tokens;
	j->at.block = block;
	j->at.skip = skip;
	if (j->c->on_shard)
		RV_TRY(j->c->on_shard(j->c->ctx, path, &j->at, et));
	return tokenize_state_write(j->c->out, &j->at, et);
}

static enum rv_err append_block(struct job *j, uint64_t block, const struct token_list *ids, struct rv_errtext *et) {
	if (j->skip > ids->n)
		return rv_fail(et, RV_E_PROTOCOL,
					   "%s: block %" PRIu64 " has %zu tokens, fewer than before: the text changed; start again",
					   j->c->out, block, ids->n);
	for (uint64_t from = j->skip; from < ids->n;) {
		if (!j->shard_open)
			RV_TRY(open_shard(j, et));
		uint64_t room = j->c->shard_tokens - j->shard.n_tokens, left = ids->n - from;
		uint64_t n = left < room ? left : room;
		RV_TRY(shard_writer_append(&j->shard, ids->ids + from, n, et));
		from += n;
		if (n == room)
			RV_TRY(close_shard(j, block, from, et));
	}
	j->skip = 0;
	return RV_OK;
}

/* Sets *more to whether there was a batch. */
static enum rv_err run_batch(struct job *j, bool *more, struct rv_errtext *et) {
	uint64_t n = 0;
	RV_TRY(j->c->blocks->load(j->c->blocks->ctx, j->begin, j->batch, &n, et));
	RV_ASSERT(n <= j->batch);
	*more = n > 0;
	const struct block_lanes lanes = {.blocks = j->c->blocks,
									  .begin = j->begin,
									  .end = j->begin + n,
									  .lanes = j->c->threads,
									  .fn = encode_block,
									  .tick = tick,
									  .ctx = j};
	RV_TRY(block_lanes_run(&lanes, et));
	for (uint64_t i = 0; i < n; i++)
		RV_TRY(append_block(j, j->begin + i, &j->encoded[i], et));
	j->begin += n;
	return RV_OK;
}

enum rv_err tokenize_made_of(const struct tokenize_config *c, struct rv_hash *out, struct rv_errtext *et) {
	struct rv_hash text, tokenizer = tokenizer_identity(c->tokenizer);
	RV_TRY(c->blocks->identity(c->blocks->ctx, &text, et));
	struct rv_hasher h = rv_hasher_of("rivulet tokenize");
	rv_hash_update(&h, tokenizer.b, sizeof tokenizer.b);
	rv_hash_u64(&h, c->separator);
	rv_hash_u64(&h, c->shard_tokens);
	rv_hash_update(&h, text.b, sizeof text.b);
	*out = rv_hash_final(&h);
	return RV_OK;
}

/* Removes the unfinished files of a killed job. */
static void remove_temporaries(const char *out) {
	DIR *dir = opendir(out);
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (fnmatch(TOKENIZE_TEMPORARY_NAMES, d->d_name, 0) == 0)
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
}

/* A shard ends within a block, or behind it; so the block before exists. */
static enum rv_err check_place(struct job *j, struct rv_errtext *et) {
	uint64_t n = 1;
	if (j->at.block > 0 && !j->at.done)
		RV_TRY(j->c->blocks->load(j->c->blocks->ctx, j->at.block - 1, 1, &n, et));
	return n == 1 ? RV_OK
				  : rv_fail(et, RV_E_CORRUPT, "%s/tokens.json: block %" PRIu64 ", but the text has fewer", j->c->out,
							j->at.block);
}

static enum rv_err resume(struct job *j, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	enum rv_err e = tokenize_state_read(j->c->out, &j->at, &why);
	if (e == RV_E_NOTFOUND) {
		j->at = (struct tokenize_state){.made_of = j->c->made_of};
		return tokenize_state_write(j->c->out, &j->at, et);
	}
	if (e != RV_OK)
		return rv_fail(et, e, "%s", why.text);
	const bool is_other = !rv_hash_equal(&j->at.made_of, &j->c->made_of);
	if (is_other && j->at.shards == 0) {
		j->at = (struct tokenize_state){.made_of = j->c->made_of};
		return tokenize_state_write(j->c->out, &j->at, et);
	}
	if (is_other)
		return rv_fail(et, RV_E_PROTOCOL,
					   "%s holds tokens of another text, tokenizer or other options: choose another directory",
					   j->c->out);
	j->begin = j->at.block;
	j->skip = j->at.skip;
	return check_place(j, et);
}

static enum rv_err prepare(struct job *j, struct rv_errtext *et) {
	j->batch = (uint64_t)j->c->threads * BLOCKS_PER_LANE;
	j->encoded = calloc(j->batch, sizeof *j->encoded);
	if (!j->encoded)
		return rv_fail(et, RV_E_NOMEM, "no memory for %" PRIu64 " blocks", j->batch);
	for (int i = 0; i < j->c->threads; i++)
		RV_TRY(encoder_new(j->c->tokenizer, &j->encoders[i], et));
	remove_temporaries(j->c->out);
	return resume(j, et);
}

static void release(struct job *j) {
	if (j->shard_open)
		shard_writer_abandon(&j->shard);
	for (int i = 0; i < j->c->threads; i++)
		encoder_free(j->encoders[i]);
	for (uint64_t i = 0; j->encoded && i < j->batch; i++)
		token_list_release(&j->encoded[i]);
	free(j->encoded);
}

/* Commits the last shard, which may be shorter than the others. */
static enum rv_err finish(struct job *j, struct rv_errtext *et) {
	j->at.done = true;
	return j->shard_open ? close_shard(j, j->begin, 0, et) : tokenize_state_write(j->c->out, &j->at, et);
}

enum rv_err tokenize_job_run(const struct tokenize_config *c, struct tokenize_state *result, struct rv_errtext *et) {
	struct job *j = calloc(1, sizeof *j);
	if (!j)
		return rv_fail(et, RV_E_NOMEM, "no memory to tokenize");
	j->c = c;
	enum rv_err e = prepare(j, et);
	for (bool more = true; e == RV_OK && !j->at.done && more;)
		e = run_batch(j, &more, et);
	if (e == RV_OK && !j->at.done)
		e = finish(j, et);
	*result = j->at;
	release(j);
	free(j);
	return e;
}
