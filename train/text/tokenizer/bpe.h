/* bpe.h: byte pair encoding of one piece of text (Sennrich et al. 2016, arXiv 1508.07909; on bytes:
 * GPT-2).
 *
 * Encoding starts with one token per byte and merges the adjacent pair of lowest rank, the leftmost
 * among equals, until no pair has a rank. Pieces of up to BPE_SHORT_BYTES scan all pairs; longer
 * ones keep a heap, so that any n bytes take O(n log n) time. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BPE_H
#define RV_TRAIN_TEXT_TOKENIZER_BPE_H

#include "train/text/tokenizer/buffers.h"
#include "train/text/tokenizer/pair_table.h"
#include "train/text/tokenizer/vocab.h"

/* Limit in bytes: positions are 32 bits, and encoding holds a text in memory several times. */
enum { BPE_MAX_PIECE_BYTES = 1 << 30 };

/* Read-only after loading: any number of threads may share it. */
struct bpe {
	struct vocab vocab;
	struct pair_table pairs;
	uint32_t byte_token[256];
	bool whole_pieces_first; /* a piece that equals a token becomes that token, without merges */
};

/* Working memory of one thread, zero-initialised by the caller. */
struct bpe_scratch {
	struct bpe_symbol *symbols; /* long pieces */
	uint64_t *heap;             /* rank << 32 | position */
	size_t cap, heap_n, heap_cap;
};

/* Fills byte_token from the vocabulary. Returns RV_E_INVALID, naming it, if a byte has no token. */
enum rv_err bpe_find_bytes(struct bpe *b, struct rv_errtext *et);
void bpe_release(struct bpe *b);
void bpe_scratch_release(struct bpe_scratch *s);

/* Appends the tokens of a piece. Returns RV_E_RANGE above BPE_MAX_PIECE_BYTES, or RV_E_NOMEM. */
enum rv_err bpe_encode(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n,
					   struct token_list *out, struct rv_errtext *et);

/* Merge a piece of 1 to BPE_SHORT_BYTES bytes, and one of any length, to the same tokens; exposed
 * for tests. Return what bpe_encode returns. */
enum { BPE_SHORT_BYTES = 64 };
enum rv_err bpe_merge_short(const struct bpe *b, const uint8_t *piece, size_t n, struct token_list *out,
							struct rv_errtext *et);
enum rv_err bpe_merge_long(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n,
						   struct token_list *out, struct rv_errtext *et);

#endif
