/* block_lanes.h: processes blocks of text on several threads, each with its own working memory (its
 * lane). */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BLOCK_LANES_H
#define RV_TRAIN_TEXT_TOKENIZER_BLOCK_LANES_H

#include "train/text/tokenizer/text_blocks.h"

enum { BLOCK_LANES_MAX = 256 };

struct block_lanes {
	const struct text_blocks *blocks;
	uint64_t begin, end; /* blocks [begin, end) */
	int lanes;           /* 1..BLOCK_LANES_MAX */
	/* Processes one block on the lane's thread. The assignment of blocks to lanes is not
	 * defined. */
	enum rv_err (*fn)(void *ctx, int lane, uint64_t index, const struct text_block *block, struct rv_errtext *et);
	/* Called on the calling thread about ten times a second; returns false to stop. May be NULL. */
	bool (*tick)(void *ctx, uint64_t bytes_done);
	void *ctx;
};

/* Returns the number of lanes: `wanted`, or if that is 0 one per processor that this process may
 * use. */
int block_lanes_choose(int wanted);

/* Processes all blocks. Returns the first fault in the order of the blocks, or RV_E_CANCELLED if
 * `tick` returned false. */
enum rv_err block_lanes_run(const struct block_lanes *l, struct rv_errtext *et);

#endif
