/* piece_counts.h: counts the pieces of a text, which a vocabulary is trained on. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PIECE_COUNTS_H
#define RV_TRAIN_TEXT_TOKENIZER_PIECE_COUNTS_H

#include "train/text/tokenizer/buffers.h"

#include <stddef.h>
#include <stdint.h>

/* Limits. Longer pieces are counted in parts: no token is longer. */
enum { PIECE_COUNTS_MAX_BYTES = 128, PIECE_COUNTS_MAX = 1 << 26 };

struct counted_piece {
	size_t offset; /* into `bytes` */
	uint32_t n;
	uint64_t count;
};

/* Zero-initialised by the caller. */
struct piece_counts {
	struct byte_list bytes;
	struct counted_piece *at; /* (n) pieces by first occurrence */
	size_t n, cap;
	uint32_t *slots; /* open addressing: index into `at`, or UINT32_MAX */
	size_t n_slots;
	uint8_t hash_key[16];
};

/* Counts a piece `times` times. Returns RV_E_NOMEM, or RV_E_RANGE above PIECE_COUNTS_MAX. */
enum rv_err piece_counts_add(struct piece_counts *c, const uint8_t *piece, size_t n, uint64_t times,
							 struct rv_errtext *et);
/* Adds the counts of `other`, in part on a fault. Returns what piece_counts_add returns. */
enum rv_err piece_counts_merge(struct piece_counts *c, const struct piece_counts *other, struct rv_errtext *et);
void piece_counts_release(struct piece_counts *c);

#endif
