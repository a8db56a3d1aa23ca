/* block_lanes.h: blocks of text on threads, each with its own working memory (its lane). */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BLOCK_LANES_H
#define RV_TRAIN_TEXT_TOKENIZER_BLOCK_LANES_H

#include "train/text/tokenizer/block_source.h"

#include <stdbool.h>

enum { BLOCK_LANES_MAX = 256 };

struct block_lanes {
	const struct block_source *blocks;
	uint64_t begin, end; /* blocks [begin, end), all ready */
	int lanes;           /* 1..BLOCK_LANES_MAX */
	/* Processes one block on the lane's thread. Any lane may get any block. */
	enum rv_err (*fn)(void *ctx, int lane, uint64_t index, const struct text_block *block, struct rv_errtext *et);
	/* Runs on the calling thread about ten times a second; returns false to stop. `bytes_done`: of
	 * the files, before the block `begin` plus as many as are done. May be NULL. */
	bool (*tick)(void *ctx, uint64_t bytes_done);
	void *ctx;
};

/* Returns the number of lanes: `wanted`, or if 0 one per processor of this process. */
int block_lanes_choose(int wanted);

/* Returns the fault of the lowest block that failed, or RV_E_CANCELLED if `tick` returned false. */
enum rv_err block_lanes_run(const struct block_lanes *l, struct rv_errtext *et);

#endif
