/* bpe_train.h: makes a byte-level BPE vocabulary from counted pieces (Sennrich et al. 2016, arXiv 1508.07909).
 *
 * The most frequent pair of adjacent tokens becomes a token, again and again; among equally frequent ones the pair of
 * the lowest ids. The same counts give the same vocabulary, in whatever order they came.
 */
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

/* Ids 0 to 255 are the bytes in the order of their byte-level characters, then come the merged tokens. */
struct trained_bpe {
	struct vocab vocab;       /* n_ids is the size asked for */
	struct bpe_merge *merges; /* in order; two may make the same token */
	size_t n_merges, cap_merges;
};

/* NULL, or called now and then; returns false to stop. */
typedef bool bpe_train_progress(void *ctx, uint32_t tokens, uint32_t wanted);

/* RV_E_RANGE: `n_tokens` is not in BPE_TRAIN_MIN_TOKENS..VOCAB_MAX_TOKENS, or the text has too few pairs for so many
 * (naming how many it has); RV_E_CANCELLED: progress said so; RV_E_NOMEM. */
enum rv_err bpe_train(const struct piece_counts *pieces, uint32_t n_tokens, bpe_train_progress *progress, void *ctx,
					  struct trained_bpe *out, struct rv_errtext *et);
void trained_bpe_release(struct trained_bpe *t);

#endif
