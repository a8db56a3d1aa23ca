/* bpe_train.h: makes a byte-level BPE vocabulary from counted pieces (Sennrich et al. 2016, arXiv
 * 1508.07909).
 *
 * Training merges the most frequent pair of adjacent tokens into a new token until the vocabulary
 * is full; among equally frequent pairs it takes the one with the lowest ids. Equal counts give
 * equal vocabularies, in any order of pieces. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BPE_TRAIN_H
#define RV_TRAIN_TEXT_TOKENIZER_BPE_TRAIN_H

#include "train/text/tokenizer/piece_counts.h"
#include "train/text/tokenizer/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPE_TRAIN_MIN_TOKENS = 256 };

struct bpe_merge {
	uint32_t left, right;
};

/* Ids 0 to 255: the bytes in the order of their byte-level characters; then merged tokens. */
struct trained_bpe {
	struct vocab vocab;       /* n_ids is the requested size */
	struct bpe_merge *merges; /* (n_merges) in order; two may make the same token */
	size_t n_merges, cap_merges;
};

/* Called every 64 merges. Returns false to stop. */
typedef bool bpe_train_progress(void *ctx, uint32_t tokens, uint32_t wanted);

/* Trains `n_tokens` tokens into `out`, which trained_bpe_release() frees. `progress` may be NULL.
 * Returns RV_E_RANGE if `n_tokens` is outside BPE_TRAIN_MIN_TOKENS..VOCAB_MAX_TOKENS or the text
 * has too few pairs (the text names how many tokens it allows), RV_E_CANCELLED if `progress`
 * returned false, RV_E_NOMEM; `out` is empty then. */
enum rv_err bpe_train(const struct piece_counts *pieces, uint32_t n_tokens, bpe_train_progress *progress, void *ctx,
					  struct trained_bpe *out, struct rv_errtext *et);
void trained_bpe_release(struct trained_bpe *t);

#endif
