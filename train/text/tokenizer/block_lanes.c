/* block_lanes.c: lanes take blocks from a shared counter; one parallel_run iteration each. */
#include "train/text/tokenizer/block_lanes.h"

#include "base/assert.h"
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct shared {
	const struct block_lanes *l;
	atomic_uint_fast64_t next, blocks_done;
	atomic_bool stop;
	bool cancelled;
	pthread_mutex_t mutex; /* guards the fields below */
	enum rv_err fault;
	uint64_t fault_block;
	struct rv_errtext why;
};

/* Records the fault of the lowest block. Lanes take blocks in order, so the lowest failing one has
 * begun: others may finish, none begins. */
static void note_fault(struct shared *s, uint64_t block, enum rv_err e, const struct rv_errtext *why) {
	pthread_mutex_lock(&s->mutex);
	if (s->fault == RV_OK || block < s->fault_block) {
		s->fault = e;
		s->fault_block = block;
		s->why = *why;
	}
	pthread_mutex_unlock(&s->mutex);
	atomic_store(&s->stop, true);
}

static enum rv_err run_block(struct shared *s, int lane, uint64_t i, uint8_t *buffer, struct rv_errtext *et) {
	struct text_block block;
	RV_TRY(s->l->blocks->get(s->l->blocks->ctx, i, buffer, &block, et));
	RV_TRY(s->l->fn(s->l->ctx, lane, i, &block, et));
	atomic_fetch_add(&s->blocks_done, 1);
	return RV_OK;
}

static void run_lane(void *ctx, int lane) {
	struct shared *s = ctx;
	uint8_t *buffer = malloc(TEXT_BLOCK_BUFFER_BYTES);
	while (!atomic_load(&s->stop)) {
		uint64_t i = atomic_fetch_add(&s->next, 1);
		if (i >= s->l->end)
			break;
		struct rv_errtext why = {0};
		enum rv_err e =
			buffer ? run_block(s, lane, i, buffer, &why) : rv_fail(&why, RV_E_NOMEM, "no memory for a block of text");
		if (e != RV_OK)
			note_fault(s, i, e, &why);
	}
	free(buffer);
}

static void tick(void *ctx) {
	struct shared *s = ctx;
	const struct block_lanes *l = s->l;
	if (l->tick && !l->tick(l->ctx, l->blocks->bytes_before(l->blocks->ctx, l->begin + atomic_load(&s->blocks_done)))) {
		s->cancelled = true;
		atomic_store(&s->stop, true);
	}
}

int block_lanes_choose(int wanted) {
	int n = wanted > 0 ? wanted : parallel_cores();
	return n < BLOCK_LANES_MAX ? n : BLOCK_LANES_MAX;
}

enum rv_err block_lanes_run(const struct block_lanes *l, struct rv_errtext *et) {
	RV_ASSERT(l->lanes >= 1 && l->lanes <= BLOCK_LANES_MAX && l->begin <= l->end);
	struct shared s = {.l = l, .mutex = PTHREAD_MUTEX_INITIALIZER};
	atomic_init(&s.next, l->begin);
	const struct parallel_loop loop = {.n = l->lanes, .threads = l->lanes, .fn = run_lane, .tick = tick, .ctx = &s};
	enum rv_err e = parallel_run(&loop, et);
	pthread_mutex_destroy(&s.mutex);
	if (e == RV_OK && s.fault != RV_OK)
		return rv_fail(et, s.fault, "%s", s.why.text);
	if (e == RV_OK && s.cancelled)
		return rv_fail(et, RV_E_CANCELLED, "stopped");
	return e;
}
