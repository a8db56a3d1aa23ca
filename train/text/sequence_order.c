/* sequence_order.c: see sequence_order.h. */
#include "train/text/sequence_order.h"

#include "base/assert.h"
#include "base/rng.h"
#include "train/text/data.h"
#include "train/text/permute.h"

/* Philox streams of this file. A class of windows has its own: the low half is its number. */
#define STREAM_WINDOWS ((uint64_t)0x77696e64 << 32)
#define STREAM_WITHIN  ((uint64_t)0x77697468 << 32)
#define STREAM_PHASE   ((uint64_t)0x73687068 << 32)

enum { FEWER, MORE }; /* held-out blocks: the classes */

static uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t counter) {
	struct rv_rng rng = {.seed = seed, .stream = stream, .counter = counter};
	return rv_rng_u64(&rng);
}

/* Block i is held out if i % h == h - 1, so floor(b / h) are below block b. A window of W blocks
 * has floor(W / h) of them, or one more: window w does where r = W % h carries, that is, where
 * floor(r (w + 1) / h) is above floor(r w / h). */
static void count_windows(struct sequence_order *o, uint64_t n_blocks) {
	const uint64_t h = o->holdout_every, r = ORDER_WINDOW_BLOCKS % h;
	const uint64_t n = n_blocks < ORDER_LEAST_BLOCKS ? 0 : n_blocks / ORDER_WINDOW_BLOCKS;
	o->classes[MORE].n = r * n / h;
	o->classes[FEWER].n = n - o->classes[MORE].n;
	o->classes[FEWER].blocks = ORDER_WINDOW_BLOCKS - ORDER_WINDOW_BLOCKS / h;
	o->classes[MORE].blocks = o->classes[FEWER].blocks - 1;
}

/* Returns the window that is number i of its class, in the order of the text: that where the
 * (i + 1)-th carry is, or the i-th without one. */
static uint64_t window_of(const struct sequence_order *o, int class, uint64_t i) {
	const uint64_t h = o->holdout_every, r = ORDER_WINDOW_BLOCKS % h;
	return class == FEWER ? i * h / (h - r) : ((i + 1) * h + r - 1) / r - 1;
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
	count_windows(&o, n_blocks);
	return o;
}

uint64_t sequence_order_length(const struct sequence_order *o) {
	return o->n_train_blocks * o->per_block;
}

/* A window, and a sequence in it: number `i` of `n`, in the order of reading. */
struct turn {
	uint64_t window, i, n;
};

/* Finds what is read at place `at` of a pass. */
static struct turn turn_at(const struct sequence_order *o, uint64_t pass, uint64_t at) {
	const uint64_t windows = o->classes[FEWER].n + o->classes[MORE].n;
	for (int class = FEWER; class <= MORE; class ++) {
		const struct window_class *c = &o->classes[class];
		const uint64_t of_window = c->blocks * o->per_block;
		if (at < c->n * of_window) {
			const uint64_t key = random_u64(o->seed, STREAM_WINDOWS | (uint64_t) class, pass);
			const uint64_t i = permute_index(c->n, key, at / of_window);
			return (struct turn){.window = window_of(o, class, i), .i = at % of_window, .n = of_window};
		}
		at -= c->n * of_window;
	}
	const uint64_t blocks =
		o->classes[FEWER].n * o->classes[FEWER].blocks + o->classes[MORE].n * o->classes[MORE].blocks;
	return (struct turn){.window = windows, .i = at, .n = (o->n_train_blocks - blocks) * o->per_block};
}

struct sequence_place sequence_order_at(const struct sequence_order *o, uint64_t position) {
	const uint64_t length = sequence_order_length(o), h = o->holdout_every;
	struct sequence_place p = {.pass = position / length};
	const struct turn t = turn_at(o, p.pass, position % length);
	p.window = t.window;
	const uint64_t key = random_u64(random_u64(o->seed, STREAM_WITHIN, p.pass), STREAM_WITHIN, p.window);
	const uint64_t i = permute_index(t.n, key, t.i), first = p.window * ORDER_WINDOW_BLOCKS;
	const uint64_t train_block = first - first / h + i / o->per_block, k = i % o->per_block;
	p.block = train_block / (h - 1) * h + train_block % (h - 1);
	RV_ASSERT(p.block % h != h - 1);
	const uint64_t phase =
		random_u64(random_u64(o->seed, STREAM_PHASE, p.pass), STREAM_PHASE, p.block) % (o->slack + 1);
	p.token = p.block * DATA_BLOCK + phase + k * o->context;
	return p;
}
