/* heldout.h: which held-out sequences of a text an evaluation reads.
 *
 * A text is cut into blocks of DATA_BLOCK tokens, of which every holdout_every-th is held out; a
 * held-out sequence is context + 1 tokens of such a block. Sequences are numbered in the order of
 * the text. An evaluation of a published text, which members fetch shard by shard, reads from
 * few places (HELDOUT_PLACES); one of other text from everywhere. */
#ifndef RV_TRAIN_TEXT_HELDOUT_H
#define RV_TRAIN_TEXT_HELDOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { HELDOUT_PLACES = 8 };

struct heldout {
	uint64_t n_blocks; /* that are held out */
	uint32_t holdout_every, context;
	uint32_t per_block; /* sequences of a block */
	bool in_places;     /* an evaluation reads from few places */
};

/* Asserts holdout_every >= 1 and 1 <= context < DATA_BLOCK. */
struct heldout heldout_of(uint64_t n_tokens, uint32_t holdout_every, uint32_t context, bool in_places);
/* Returns the number of held-out sequences. */
uint64_t heldout_sequences(const struct heldout *h);
/* Returns the first token of a held-out sequence, counted over the text. */
uint64_t heldout_token(const struct heldout *h, uint64_t sequence);
/* Returns how many sequences an evaluation of at most max_tokens predicted tokens uses: at least
 * one; all if max_tokens is 0. */
uint64_t heldout_used(const struct heldout *h, uint64_t max_tokens);
/* Returns the sequence that is number i of the `used` ones of an evaluation, none twice, in the
 * order of the text. In places: from HELDOUT_PLACES groups of blocks, evenly spread, as long as
 * they have enough sequences; else spread over all. */
uint64_t heldout_choice(const struct heldout *h, uint64_t i, uint64_t used);

#endif
