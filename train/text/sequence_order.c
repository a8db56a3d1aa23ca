/* sequence_order.c: see sequence_order.h. */
#include "train/text/sequence_order.h"

#include "base/assert.h"
#include "base/rng.h"
#include "train/text/data.h"
#include "train/text/permute.h"

/* Philox streams of this file. */
#define STREAM_WINDOWS ((uint64_t)0x77696e64 << 32)
#define STREAM_WITHIN  ((uint64_t)0x77697468 << 32)
#define STREAM_PHASE   ((uint64_t)0x73687068 << 32)

static uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t counter) {
	struct rv_rng rng = {.seed = seed, .stream = stream, .counter = counter};
	return rv_rng_u64(&rng);
}

struct sequence_order sequence_order_of(uint64_t n_tokens, uint32_t holdout_every, uint32_t context, uint64_t seed) {
	RV_ASSERT(holdout_every >= 2 && context >= 1 && context < DATA_BLOCK);
	const uint64_t n_blocks = n_tokens / DATA_BLOCK;
	struct sequence_order o = {.n_train_blocks = n_blocks - n_blocks / holdout_every,
							   .seed = seed,
							   .holdout_every = holdout_every,
							   .context = context,
							   .per_block = (DATA_BLOCK - 1) / context};
	RV_ASSERT(o.n_train_blocks > 0);
	o.slack = DATA_BLOCK - 1 - o.per_block * context;
	return o;
}

uint64_t sequence_order_length(const struct sequence_order *o) {
	return o->n_train_blocks * o->per_block;
}

/* Returns the window that is number `i` of a pass; the one that is not whole is the last. */
static uint64_t window_at(const struct sequence_order *o, uint64_t pass, uint64_t i) {
	const uint64_t whole = o->n_train_blocks / ORDER_WINDOW_BLOCKS;
	return i < whole ? permute_index(whole, random_u64(o->seed, STREAM_WINDOWS, pass), i) : i;
}

struct sequence_place sequence_order_at(const struct sequence_order *o, uint64_t position) {
	const uint64_t length = sequence_order_length(o), of_window = (uint64_t)ORDER_WINDOW_BLOCKS * o->per_block;
	struct sequence_place p = {.pass = position / length};
	const uint64_t in_pass = position % length;
	p.window = window_at(o, p.pass, in_pass / of_window);
	const uint64_t before = p.window * of_window, left = length - before;
	const uint64_t key = random_u64(random_u64(o->seed, STREAM_WITHIN, p.pass), STREAM_WITHIN, p.window);
	const uint64_t i = permute_index(left < of_window ? left : of_window, key, in_pass % of_window);
	const uint64_t train_block = (before + i) / o->per_block, k = (before + i) % o->per_block;
	p.block = train_block / (o->holdout_every - 1) * o->holdout_every + train_block % (o->holdout_every - 1);
	RV_ASSERT(p.block % o->holdout_every != o->holdout_every - 1);
	const uint64_t phase =
		random_u64(random_u64(o->seed, STREAM_PHASE, p.pass), STREAM_PHASE, p.block) % (o->slack + 1);
	p.token = p.block * DATA_BLOCK + phase + k * o->context;
	return p;
}
