/* text_blocks.h: cuts text files into blocks that are tokenized independently, at places that
 * depend on the text alone.
 *
 * A block begins where no piece of GPT-2's, cl100k_base's, o200k_base's and Llama 3's
 * pre-tokenizers crosses: before a space between an ASCII letter or digit and an ASCII letter, or
 * after a newline between two characters that are not white space, the second not a '/'. Nothing
 * joins across such a place in NFC either, so the blocks' tokens are those of the whole file. If
 * half a block has no such place, the cut is between any two characters. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TEXT_BLOCKS_H
#define RV_TRAIN_TEXT_TOKENIZER_TEXT_BLOCKS_H

#include "train/text/tokenizer/block_source.h"
#include "train/text/tokenizer/data_files.h"

struct text_blocks {
	const struct data_files *files;
	uint64_t *first; /* (n_files + 1) number of each file's first block */
	uint64_t n;
};

/* Counts the blocks of `files`, which must outlive `b`. Returns RV_E_NOMEM. */
enum rv_err text_blocks_init(struct text_blocks *b, const struct data_files *files, struct rv_errtext *et);
void text_blocks_release(struct text_blocks *b);
/* Returns the blocks, each file a document, as a source that borrows `b`. */
struct block_source text_blocks_source(const struct text_blocks *b);
/* Reads block i of b->n into `buffer`, which out->at points into; the block may be empty. Any
 * thread. Returns what mapped_file_read returns. */
enum rv_err text_blocks_get(const struct text_blocks *b, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES],
							struct text_block *out, struct rv_errtext *et);
/* Returns how many bytes of the files are before the nominal beginning of block i, 0 to b->n. */
uint64_t text_blocks_bytes_before(const struct text_blocks *b, uint64_t i);

/* Returns where the block of nominal begin `nominal` begins, or earlier. Exposed for tests. */
size_t text_blocks_cut(const uint8_t *text, size_t n, size_t nominal);

#endif
