/* fuzz_grid.c: a grid of four workers in two rows among hostile peers: any message of a row or of a
 * column, in any order, links that come and go, time that jumps, attempts in which the other row's
 * roster changed. The cores assert their own invariants; here: what is sent has the right size and
 * goes to the right peer, and suspects are places of the roster. */
#include "net/control/rows_view.h"
#include "net/reduce/grid.h"

#include "base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/hostile_message.h"

#include <stdlib.h>
#include <string.h>

enum {
	MEMBERS = 4,
	CHUNKS = 7,
	CHUNK_BYTES = 5,
	SUM_BYTES = 8,
	VECTOR_BYTES = CHUNKS * SUM_BYTES,
	ROUND = 7,
	ATTEMPTS = 4
};

struct node {
	struct member_ref members[MEMBERS];
	struct rows_plan plan;
	struct document view;
	uint32_t attempt;
	struct grid *grid;
	void *memory;
	uint8_t *flags;
	uint8_t own[VECTOR_BYTES], reduced[VECTOR_BYTES], held[NET_MAX_ROW][VECTOR_BYTES], sum[VECTOR_BYTES];
	uint8_t row_sums[NET_MAX_ROWS][VECTOR_BYTES];
	int64_t now_us;
	bool up[MEMBERS];
};

static size_t chunk_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)codec;
	(void)ctx;
	RV_ASSERT(chunk < CHUNKS);
	return CHUNK_BYTES;
}

static size_t chunk_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)codec;
	return chunk * chunk_bytes(ctx, 0, chunk);
}

static size_t sum_bytes(void *ctx, uint32_t chunk) {
	(void)ctx;
	RV_ASSERT(chunk < CHUNKS);
	return SUM_BYTES;
}

static size_t sum_offset(void *ctx, uint32_t chunk) {
	return chunk * sum_bytes(ctx, chunk);
}

static enum rv_err sum(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
					   struct rv_errtext *et) {
	struct node *n = ctx;
	RV_ASSERT(out == NULL);
	return hostile_fold(c->data, CHUNK_BYTES, c->n, n->sum + sum_offset(ctx, chunk), SUM_BYTES, bad, et);
}

static enum rv_err join(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
						struct rv_errtext *et) {
	(void)ctx;
	(void)chunk;
	return hostile_fold(c->data, SUM_BYTES, c->n, out, CHUNK_BYTES, bad, et);
}

/* The node is the first of the roster. */
static void make_view(struct node *n) {
	memset(&n->view, 0, offsetof(struct document, ranges));
	n->view.phase = RUN_REDUCE;
	n->view.round = ROUND;
	n->view.attempt = n->attempt;
	rows_view(&n->plan, 0, &n->view);
}

static struct node *node_new(void) {
	struct node *n = calloc(1, sizeof *n);
	RV_ASSERT(n);
	n->attempt = 1;
	n->plan = (struct rows_plan){.n_rows = 2, .first = {0, 2, 4}, .members = n->members, .since = {1, 1}};
	for (uint32_t i = 0; i < MEMBERS; i++)
		n->members[i] = (struct member_ref){.member = 3 * i + 1, .weight = 1 + i, .boot = 1};
	rows_plan_columns(&n->plan, CHUNKS, 2);
	make_view(n);
	n->memory = aligned_alloc(64, (grid_size() + 63) / 64 * 64);
	n->flags = calloc(1, grid_flags_bytes(CHUNKS));
	RV_ASSERT(n->memory && n->flags);
	const struct grid_config cfg = {.self_member = n->members[0].member,
									.n_chunks = CHUNKS,
									.codec = {.row = {.ctx = n,
													  .chunk_bytes = chunk_bytes,
													  .chunk_offset = chunk_offset,
													  .reduce = join,
													  .check = hostile_check},
											  .sum_bytes = sum_bytes,
											  .sum_offset = sum_offset,
											  .sum = sum,
											  .join = join},
									.silence_us = 4000,
									.stall_us = 6000,
									.ping_interval_us = 1000};
	struct grid_memory mem = {.own = n->own, .reduced = n->reduced, .sum = n->sum, .flags = n->flags};
	for (int i = 0; i < NET_MAX_ROW; i++)
		mem.held[i] = n->held[i];
	for (int i = 0; i < NET_MAX_ROWS; i++)
		mem.row_sums[i] = n->row_sums[i];
	n->grid = grid_init(n->memory, &cfg, &mem, &n->view, 0);
	return n;
}

static void node_free(struct node *n) {
	free(n->flags);
	free(n->memory);
	free(n);
}

/* The other row's roster changes, or only the attempt does. */
static void next_attempt(struct node *n, bool changes) {
	if (n->attempt == ATTEMPTS)
		return;
	n->attempt++;
	if (changes)
		n->plan.since[1] = n->attempt;
	make_view(n);
	RV_ASSERT(grid_continues(n->grid, &n->view));
	grid_restart(n->grid, &n->view, n->now_us);
	for (int peer = 1; peer < grid_peers(n->grid); peer++)
		if (n->up[peer])
			grid_link_up(n->grid, n->now_us, peer);
}

/* The platform's side of the contract: messages come over links that are up. */
static void receive(struct node *n, int from, struct rv_reader *r) {
	uint8_t data[HOSTILE_DATA_MAX];
	const uint8_t kind = rv_read_u8(r);
	struct reduce_msg m = {.type = (uint8_t)(REDUCE_SCATTER + kind % 4), .column = kind >> 2 & 1, .round = ROUND};
	m.round -= kind >> 3 & 1;
	m.attempt = rv_read_u8(r) % (ATTEMPTS + 1);
	m.section = m.column ? rv_read_u8(r) % (CHUNKS + 1) : 0;
	hostile_message(r, CHUNKS, data, &m);
	if (!n->up[from])
		return;
	const enum rv_err e = grid_receive(n->grid, n->now_us, from, &m, NULL);
	RV_ASSERT(e == RV_OK || e == RV_E_PROTOCOL || e == RV_E_CORRUPT);
	if (e == RV_OK)
		return;
	n->up[from] = false;
	grid_link_down(n->grid, n->now_us, from, true);
}

static size_t size_of(const struct reduce_msg *m) {
	if (m->type == REDUCE_RESUME)
		return 1;
	if (m->type == REDUCE_PING)
		return 0;
	return m->type == REDUCE_SCATTER && m->column ? SUM_BYTES : CHUNK_BYTES;
}

static void drain(struct node *n, int to) {
	struct reduce_msg m;
	for (int i = 0; grid_send(n->grid, n->now_us, to, &m); i++) {
		RV_ASSERT(i < 1000 && m.round == ROUND && m.attempt == n->attempt);
		RV_ASSERT(m.column == (to >= n->view.n_members) && m.data_bytes == size_of(&m));
		RV_ASSERT(m.chunk < CHUNKS && (!m.column || m.section == 0));
	}
}

static void step(struct node *n, struct rv_reader *r) {
	const uint8_t op = rv_read_u8(r);
	const int peer = 1 + op % (grid_peers(n->grid) - 1);
	switch (op >> 2 & 7) {
	case 0:
		n->up[peer] = true;
		grid_link_up(n->grid, n->now_us, peer);
		return;
	case 1:
		n->up[peer] = false;
		grid_link_down(n->grid, n->now_us, peer, op >> 5 & 1);
		return;
	case 2:
		n->now_us += rv_read_u16(r);
		grid_tick(n->grid, n->now_us);
		return;
	case 3:
		next_attempt(n, op >> 5 & 1);
		return;
	case 4:
		drain(n, peer);
		return;
	default:
		receive(n, peer, r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct rv_reader r = rv_reader_of(data, size);
	struct node *n = node_new();
	while (rv_reader_left(&r) > 0)
		step(n, &r);
	const struct grid_suspects s = grid_suspects(n->grid);
	for (int i = 0; i < s.n; i++)
		RV_ASSERT(s.places[i] >= 1 && s.places[i] < MEMBERS && (i == 0 || s.places[i] > s.places[i - 1]));
	RV_ASSERT(grid_info(n->grid).world == MEMBERS);
	node_free(n);
	return 0;
}
