/* sequence_order.h: the order in which a run reads the sequences of a published text, pass after
 * pass, computed in O(1) for any position.
 *
 * It is local, so that members fetch few shards: the blocks of the text, in order, are cut into
 * windows of ORDER_WINDOW_BLOCKS, each a shard of the usual size; a pass takes the windows in a
 * pseudo-random order, and the training sequences of a window in one, too. Windows have one of two
 * numbers of held-out blocks; those with fewer come first. The blocks behind the last whole window
 * are the last of each pass. The place in a block where its first sequence begins is drawn for each
 * pass. No sequence has a held-out token. */
#ifndef RV_TRAIN_TEXT_SEQUENCE_ORDER_H
#define RV_TRAIN_TEXT_SEQUENCE_ORDER_H

#include "train/text/published/least_room.h"

#include <stdint.h>

/* Windows with one number of training blocks. */
struct window_class {
	uint64_t n;      /* of the text */
	uint64_t blocks; /* for training, in each */
};

struct sequence_order {
	uint64_t n_train_blocks, seed;
	uint32_t holdout_every, context, per_block; /* sequences of a block */
	uint32_t slack;                             /* tokens by which a block's sequences may be shifted */
	struct window_class classes[2];             /* with fewer held-out blocks, and with one more */
};

/* Returns the order of a text of n_tokens tokens. Asserts holdout_every >= 2, 1 <= context <
 * DATA_BLOCK, and a training block. */
struct sequence_order sequence_order_of(uint64_t n_tokens, uint32_t holdout_every, uint32_t context, uint64_t seed);
/* Returns the number of sequences in a pass. */
uint64_t sequence_order_length(const struct sequence_order *o);

struct sequence_place {
	uint64_t pass, window;
	uint64_t block; /* of the text, held-out ones counted */
	uint64_t token; /* the first of context + 1 tokens, all in this block */
};
/* Returns what is read at a position, counted over all passes: below 2^62. */
struct sequence_place sequence_order_at(const struct sequence_order *o, uint64_t position);

#endif
