/* bpe.h: byte pair encoding of one piece of text (Sennrich et al. 2016, arXiv 1508.07909; on bytes: GPT-2).
 *
 * A piece begins as one token per byte; again and again the adjacent pair of lowest rank, the leftmost among equals, is
 * merged, until no pair has a rank. Short pieces find that pair by looking at all of them; long ones keep a heap, so
 * that n bytes cost O(n log n) however they are made.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BPE_H
#define RV_TRAIN_TEXT_TOKENIZER_BPE_H

#include "train/text/tokenizer/buffers.h"
#include "train/text/tokenizer/pair_table.h"
#include "train/text/tokenizer/vocab.h"

/* Positions are 32 bits, and a text is held in memory several times over. */
enum { BPE_MAX_PIECE_BYTES = 1 << 30 };

/* Read-only once loaded: any number of threads. */
struct bpe {
	struct vocab vocab;
	struct pair_table pairs;
	uint32_t byte_token[256];
	bool whole_pieces_first; /* a piece that is a token is that token, whatever the merges say */
};

/* Working memory of one thread. Zero-initialise. */
struct bpe_scratch {
	struct bpe_symbol *symbols; /* long pieces */
	uint64_t *heap;             /* rank << 32 | position */
	size_t cap, heap_n, heap_cap;
};

/* Fills byte_token from the vocabulary. RV_E_INVALID naming the byte that has no token: text with it could not be
 * encoded. */
enum rv_err bpe_find_bytes(struct bpe *b, struct rv_errtext *et);
void bpe_release(struct bpe *b);
void bpe_scratch_release(struct bpe_scratch *s);

/* Appends the tokens of a piece. RV_E_RANGE: longer than BPE_MAX_PIECE_BYTES; RV_E_NOMEM. */
enum rv_err bpe_encode(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n,
					   struct token_list *out, struct rv_errtext *et);

/* The two ways, for tests: `n` up to BPE_SHORT_BYTES, and any. Both give the same tokens. RV_E_NOMEM. */
enum { BPE_SHORT_BYTES = 64 };
enum rv_err bpe_merge_short(const struct bpe *b, const uint8_t *piece, size_t n, struct token_list *out,
							struct rv_errtext *et);
enum rv_err bpe_merge_long(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n,
						   struct token_list *out, struct rv_errtext *et);

#endif
