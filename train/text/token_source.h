/* token_source.h: files as one sequence of tokens: the bytes of text, or token files, concatenated,
 * or a published text (published/published.h).
 *
 * Opening reads names, sizes and headers only. Reading checks every token against `vocab`. Packed
 * text, JSON Lines and Parquet are opened too, but have no tokens until token_cache.h makes
 * them. */
#ifndef RV_TRAIN_TEXT_TOKEN_SOURCE_H
#define RV_TRAIN_TEXT_TOKEN_SOURCE_H

#include "train/text/published/published.h"
#include "train/text/tokenizer/data_files.h"
#include "train/text/tokenizer/shard.h"

#include <stdbool.h>

/* Read-only after open: any number of threads may share it. */
struct token_source {
	struct data_files files;     /* empty: a published text */
	struct published *published; /* NULL: files */
	bool is_packed;              /* text that is not plain: n_tokens is 0 */
	struct shard *shards;        /* (files.n_files) NULL: the tokens are the bytes of text */
	uint64_t *begin;             /* (files.n_files) number of each shard's first token */
	uint64_t n_tokens;
	uint32_t vocab;
};

/* Opens `path`, as data_files_init() does, or only the token files in a directory that `rivulet
 * tokenize` or `rivulet data publish` wrote. All tokens are below `vocab`; 0: not checked. Returns
 * RV_E_INVALID for text mixed with tokens, a malformed token file (shard_of) or an unfinished
 * directory, RV_E_CORRUPT for a directory with files missing, RV_E_RANGE for a published text of a
 * larger vocabulary, and what data_files_init, documents_recognise and published_open return; `s`
 * is then empty. */
enum rv_err token_source_open(struct token_source *s, const char *path, uint32_t vocab, struct rv_errtext *et);
void token_source_release(struct token_source *s);
bool token_source_is_text(const struct token_source *s);
/* Returns the manifest of a published text; NULL: it is none. */
const struct manifest *token_source_manifest(const struct token_source *s);
/* Returns the bytes of the files. */
uint64_t token_source_bytes(const struct token_source *s);

/* Reads tokens [begin, begin + n), asserted to exist. Returns RV_E_RANGE, naming file, position
 * and value of a token not below vocab, RV_E_CORRUPT, naming a published shard that is damaged,
 * or RV_E_IO (truncated file); `out` is then undefined. */
enum rv_err token_source_read(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
							  struct rv_errtext *et);
/* The same, or RV_E_NOTFOUND instead of waiting for a published shard that somebody gets. */
enum rv_err token_source_read_present(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
									  struct rv_errtext *et);

#endif
