/* token_cache.h: caches the tokens of text, under a hash of text and tokenizer.
 *
 * CACHE_DIR/tokens-HASH holds what `rivulet tokenize` would write (tokenizer/tokenize_job.h): token
 * files that appear whole or not at all, and the progress, from which a call after a crash resumes.
 * Later uses check only sizes. One process makes an entry while others wait for it. If all entries
 * exceed TOKEN_CACHE_MAX_BYTES, the least recently used go, but never the one in use.
 *
 * The hash covers each file's size, modification time and first and last 4 KiB
 * (data_files_identity), so an edit in the middle that keeps size and time goes unnoticed. */
#ifndef RV_TRAIN_TEXT_TOKEN_CACHE_H
#define RV_TRAIN_TEXT_TOKEN_CACHE_H

#include "train/text/token_source.h"
#include "train/text/tokenizer/tokenizer.h"

#include <stdbool.h>

#define TOKEN_CACHE_MAX_BYTES ((uint64_t)64 << 30)
enum { TOKEN_CACHE_SHARD_TOKENS = 16 << 20 };

struct token_cache {
	const char *dir; /* created if missing */
	const struct tokenizer *tokenizer;
	const char *field;     /* as documents_open() takes it; NULL: "text" */
	int threads;           /* 0: all cores */
	uint64_t shard_tokens; /* 0: TOKEN_CACHE_SHARD_TOKENS */
	uint64_t max_bytes;    /* 0: TOKEN_CACHE_MAX_BYTES */
	/* As in struct dataset_config (train/text/data.h). */
	bool (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

/* Opens the tokens of text files, and makes them first if need be: each document (documents.h; a
 * file of plain text is one) after the tokenizer's end of text, if it has one. `vocab` is that of
 * token_source_open. Returns RV_E_CANCELLED, RV_E_FULL or RV_E_IO (naming the file), and what the
 * tokenizer and token_source_open return. */
enum rv_err token_cache_open(const struct token_cache *c, const struct data_files *text, uint32_t vocab,
							 struct token_source *out, struct rv_errtext *et);

#endif
