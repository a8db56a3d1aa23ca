/* least_room.h: how much of a published text a worker needs room for, which follows from the order
 * of reading (train/text/sequence_order.h). */
#ifndef RV_TRAIN_TEXT_PUBLISHED_LEAST_ROOM_H
#define RV_TRAIN_TEXT_PUBLISHED_LEAST_ROOM_H

#include "train/text/published/manifest.h"

enum {
	ORDER_WINDOW_BLOCKS = 128, /* 2,097,152 tokens, held-out blocks counted */
	ORDER_LEAST_BLOCKS = 1024  /* a shorter text is one window: a part of it is from everywhere in it */
};

/* Returns the bytes of shards that must fit, or shards are fetched again and again within a pass:
 * all of a text that is one window, else those of a window and one more. */
uint64_t least_room_bytes(const struct manifest *m);

#endif
