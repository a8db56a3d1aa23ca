/* token_source.h: files as one run of tokens: the bytes of text, or token shards, concatenated.
 *
 * Opening looks at names, sizes and headers only, whatever there is. Every token is checked when it is read: none that
 * is not below `vocab` ever gets out.
 */
#ifndef RV_TRAIN_TEXT_TOKEN_SOURCE_H
#define RV_TRAIN_TEXT_TOKEN_SOURCE_H

#include "train/text/tokenizer/data_files.h"
#include "train/text/tokenizer/shard.h"

#include <stdbool.h>

/* Read-only after open: any number of threads. */
struct token_source {
	struct data_files files;
	struct shard *shards; /* (files.n_files) NULL: the tokens are the bytes of text */
	uint64_t *begin;      /* (files.n_files) number of each shard's first token */
	uint64_t n_tokens;
	uint32_t vocab;
};

/* `path` is what data_files_init() takes, or a directory that `rivulet tokenize` has written: of that the shards alone.
 * `vocab`: every token is below; 0: not looked at. RV_E_INVALID: text mixed with tokens, a malformed shard (what
 * shard_of refuses), a directory whose tokenizing has not come to its end; RV_E_CORRUPT: such a directory, but some of
 * its shards are missing; what data_files_init refuses. On failure `s` holds nothing. */
enum rv_err token_source_open(struct token_source *s, const char *path, uint32_t vocab, struct rv_errtext *et);
void token_source_release(struct token_source *s);
bool token_source_is_text(const struct token_source *s);

/* Tokens [begin, begin + n), which must exist (asserted). RV_E_RANGE: one is not below vocab (its file, position and
 * value); RV_E_IO: a file was cut short. On a fault `out` is not defined. */
enum rv_err token_source_read(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
							  struct rv_errtext *et);

#endif
