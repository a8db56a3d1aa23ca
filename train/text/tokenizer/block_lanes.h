/* block_lanes.h: blocks of text handed out to threads, each with working memory of its own (its lane). */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BLOCK_LANES_H
#define RV_TRAIN_TEXT_TOKENIZER_BLOCK_LANES_H

#include "train/text/tokenizer/text_blocks.h"

enum { BLOCK_LANES_MAX = 256 };

struct block_lanes {
	const struct text_blocks *blocks;
	uint64_t begin, end; /* blocks [begin, end) */
	int lanes;           /* 1..BLOCK_LANES_MAX */
	/* On the lane's thread. Which lane gets a block is not defined. */
	enum rv_err (*fn)(void *ctx, int lane, uint64_t index, const struct text_block *block, struct rv_errtext *et);
	/* On the calling thread, about ten times a second: false stops. NULL: nothing. */
	bool (*tick)(void *ctx, uint64_t bytes_done);
	void *ctx;
};

/* How many lanes: `wanted`, or one for each processor this process may use when it is 0. */
int block_lanes_choose(int wanted);

/* Returns when every block is done. The first fault in the order of the blocks; RV_E_CANCELLED: tick said so. */
enum rv_err block_lanes_run(const struct block_lanes *l, struct rv_errtext *et);

#endif
