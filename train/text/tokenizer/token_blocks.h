/* token_blocks.h: token files (shard.h) as blocks, to be written again in shards of another
 * size. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TOKEN_BLOCKS_H
#define RV_TRAIN_TEXT_TOKENIZER_TOKEN_BLOCKS_H

#include "train/text/tokenizer/block_source.h"
#include "train/text/tokenizer/data_files.h"
#include "train/text/tokenizer/shard.h"

/* Layouts of token files. A plain one has no header that could be checked: nanoGPT's prepare.py
 * writes such, and a person must say so. */
enum token_layout { TOKEN_LAYOUT_LLMC, TOKEN_LAYOUT_PLAIN };

struct token_blocks {
	const struct data_files *files;
	struct shard *shards; /* (files->n_files) */
	uint64_t *first;      /* (files->n_files + 1) number of each file's first block */
	uint32_t vocab;
};

/* Opens `files`, which must outlive `b`, as token files of one layout with ids below `vocab`.
 * RV_E_INVALID names a file of the other layout, with what to do, or one that shard_of() refuses;
 * RV_E_NOMEM. */
enum rv_err token_blocks_init(struct token_blocks *b, const struct data_files *files, enum token_layout layout,
							  uint32_t vocab, struct rv_errtext *et);
void token_blocks_release(struct token_blocks *b);
/* Returns the blocks as a source that borrows `b`; `get` returns RV_E_RANGE for an id that is not
 * below the vocabulary, naming file and position. */
struct block_source token_blocks_source(const struct token_blocks *b);

#endif
