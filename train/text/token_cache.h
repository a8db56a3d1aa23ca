/* token_cache.h: text made into tokens once, kept under a hash that names the text and the tokenizer.
 *
 * CACHE_DIR/tokens-HASH holds what `rivulet tokenize` would write (train/text/tokenizer/tokenize_job.h): shards that appear
 * whole or not at all, and how far the work is, so that a later call goes on where an earlier one was stopped or
 * killed. An entry that is used is not looked at again but for its sizes. Only one process makes an entry; the others
 * wait for it. Entries that were not used for the longest time are removed when all together are larger than
 * TOKEN_CACHE_MAX_BYTES, never the one asked for.
 *
 * The text is named by each file's size, time of change and first and last 4 KiB (data_files_identity), not by all of
 * its bytes: an edit in the middle that keeps the size and sets the time back is not noticed.
 */
#ifndef RV_TRAIN_TEXT_TOKEN_CACHE_H
#define RV_TRAIN_TEXT_TOKEN_CACHE_H

#include "train/text/token_source.h"
#include "train/text/tokenizer/tokenizer.h"

#include <stdbool.h>

#define TOKEN_CACHE_MAX_BYTES ((uint64_t)64 << 30)
enum { TOKEN_CACHE_SHARD_TOKENS = 16 << 20 };

struct token_cache {
	const char *dir; /* made when missing */
	const struct tokenizer *tokenizer;
	int threads;           /* 0: all cores */
	uint64_t shard_tokens; /* 0: TOKEN_CACHE_SHARD_TOKENS */
	uint64_t max_bytes;    /* 0: TOKEN_CACHE_MAX_BYTES */
	/* As struct dataset_config has it (train/text/data.h). */
	bool (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

/* The tokens of text files: each file is a document, the tokenizer's end of text (if it has one) before it. `vocab` as
 * for token_source_open(). RV_E_CANCELLED; RV_E_FULL and RV_E_IO name the file that could not be written; what the
 * tokenizer and token_source_open() refuse. */
enum rv_err token_cache_open(const struct token_cache *c, const struct data_files *text, uint32_t vocab,
							 struct token_source *out, struct rv_errtext *et);

#endif
