/* token_blocks.c: each file is cut into pieces of as many tokens as a block's buffer holds. */
#include "train/text/tokenizer/token_blocks.h"

#include "base/assert.h"
#include "train/text/tokenizer/ranges.h"

#include <stdlib.h>

enum { BLOCK_TOKENS = TEXT_BLOCK_BYTES / 4 };

static enum rv_err check_layout(const struct shard *s, enum token_layout layout, struct rv_errtext *et) {
	const bool is_plain = s->tokens_at == 0;
	if (is_plain && layout == TOKEN_LAYOUT_LLMC)
		return rv_fail(et, RV_E_INVALID,
					   "token file %.200s: it does not begin with llm.c's header; if nanoGPT's prepare.py wrote it "
					   "(16-bit tokens and nothing else), say so with --format nanogpt",
					   s->map.path);
	if (!is_plain && layout == TOKEN_LAYOUT_PLAIN)
		return rv_fail(et, RV_E_INVALID,
					   "token file %.200s: it begins with llm.c's header, nanoGPT's files have none: leave out "
					   "--format nanogpt",
					   s->map.path);
	return RV_OK;
}

enum rv_err token_blocks_init(struct token_blocks *b, const struct data_files *files, enum token_layout layout,
							  uint32_t vocab, struct rv_errtext *et) {
	*b = (struct token_blocks){.files = files, .vocab = vocab};
	b->shards = calloc(files->n_files, sizeof *b->shards);
	b->first = calloc(files->n_files + 1, sizeof *b->first);
	enum rv_err e = b->shards && b->first
						? RV_OK
						: rv_fail(et, RV_E_NOMEM, "no memory for the blocks of %zu token files", files->n_files);
	for (size_t i = 0; e == RV_OK && i < files->n_files; i++) {
		e = shard_of(&b->shards[i], &files->files[i], et);
		if (e == RV_OK)
			e = check_layout(&b->shards[i], layout, et);
		b->first[i + 1] = b->first[i] + (b->shards[i].n_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
	}
	if (e != RV_OK)
		token_blocks_release(b);
	return e;
}

void token_blocks_release(struct token_blocks *b) {
	free(b->shards);
	free(b->first);
	*b = (struct token_blocks){0};
}

static uint64_t count(const struct token_blocks *b) {
	return b->first[b->files->n_files];
}

static enum rv_err load(void *ctx, uint64_t begin, uint64_t want, uint64_t *n, struct rv_errtext *et) {
	const struct token_blocks *b = ctx;
	uint64_t left = begin < count(b) ? count(b) - begin : 0;
	(void)et;
	*n = want < left ? want : left;
	return RV_OK;
}

static enum rv_err get(const void *ctx, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES], struct text_block *out,
					   struct rv_errtext *et) {
	const struct token_blocks *b = ctx;
	RV_ASSERT(i < count(b));
	size_t file = range_holding(b->first, b->files->n_files, i);
	const struct shard *s = &b->shards[file];
	uint64_t from = (i - b->first[file]) * BLOCK_TOKENS, left = s->n_tokens - from;
	size_t n = left < BLOCK_TOKENS ? (size_t)left : BLOCK_TOKENS;
	*out = (struct text_block){.at = buffer, .n = n * sizeof(uint32_t)};
	return shard_read(s, b->vocab, from, n, (int32_t *)(void *)buffer, et);
}

static uint64_t bytes_before(const void *ctx, uint64_t i) {
	const struct token_blocks *b = ctx;
	if (i >= count(b))
		return b->files->bytes;
	size_t file = range_holding(b->first, b->files->n_files, i);
	return b->files->begin[file] + (i - b->first[file]) * BLOCK_TOKENS * (unsigned)b->shards[file].token_bytes;
}

static enum rv_err identity(const void *ctx, struct rv_hash *out, struct rv_errtext *et) {
	const struct token_blocks *b = ctx;
	struct rv_hash files;
	RV_TRY(data_files_identity(b->files, &files, et));
	struct rv_hasher h = rv_hasher_of("rivulet token blocks");
	rv_hash_update(&h, files.b, sizeof files.b);
	*out = rv_hash_final(&h);
	return RV_OK;
}

struct block_source token_blocks_source(const struct token_blocks *b) {
	return (struct block_source){.ctx = (void *)(uintptr_t)b,
								 .holds_tokens = true,
								 .load = load,
								 .get = get,
								 .bytes_before = bytes_before,
								 .identity = identity};
}
