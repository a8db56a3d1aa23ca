/* block_source.h: text as numbered blocks, each tokenized by itself: files of text, which are cut
 * anywhere (text_blocks.h), or documents that come one after another
 * (train/text/documents/document_blocks.h). Blocks depend on the text alone. A source may also hold
 * tokens that others made (token_blocks.h). */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BLOCK_SOURCE_H
#define RV_TRAIN_TEXT_TOKENIZER_BLOCK_SOURCE_H

#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>

enum { TEXT_BLOCK_BYTES = 256 << 10, TEXT_BLOCK_BUFFER_BYTES = TEXT_BLOCK_BYTES / 2 * 3 + 16 };

struct text_block {
	const uint8_t *at;
	size_t n;
	const uint32_t *begins; /* (n_begins) positions at which a document begins, ascending, 0..n */
	uint32_t n_begins;
};

struct block_source {
	void *ctx;
	bool holds_tokens; /* the bytes of a block are uint32 tokens, aligned; documents begin nowhere */
	/* Makes ready blocks [begin, begin + *n), at most `want`; *n is 0 behind the last. `begin` is
	 * never below that of the call before; the blocks of that are gone. One thread. RV_E_NOMEM,
	 * RV_E_IO, and faults of the text, which name file and line or byte. */
	enum rv_err (*load)(void *ctx, uint64_t begin, uint64_t want, uint64_t *n, struct rv_errtext *et);
	/* Gives a block that is ready; `buffer` may hold it. Any thread. RV_E_IO. */
	enum rv_err (*get)(const void *ctx, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES], struct text_block *out,
					   struct rv_errtext *et);
	/* Returns about how many bytes of the files are before block i, which is ready or the next
	 * after those that are: 0 before the first, all of them behind the last, never less than for a
	 * block before. Any thread, but not beside `load`. */
	uint64_t (*bytes_before)(const void *ctx, uint64_t i);
	/* Hashes what the blocks are made of, without reading all of it. RV_E_IO. */
	enum rv_err (*identity)(const void *ctx, struct rv_hash *out, struct rv_errtext *et);
};

#endif
