/* fuzz_reduce.c: the all-reduce core among hostile participants: any message, in any order, links
 * that come and go, time that jumps. The core asserts its own invariants; here: what it sends has
 * the right size, and what it accepted as done is whole. */
#include "net/reduce/reduce.h"

#include "base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/hostile_message.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 3, SELF = 1, CHUNKS = 11, CHUNK_BYTES = 5, MEAN_BYTES = 7, VECTOR_BYTES = CHUNKS * CHUNK_BYTES };

static size_t chunk_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)codec;
	(void)ctx;
	RV_ASSERT(chunk < CHUNKS);
	return CHUNK_BYTES;
}

static size_t chunk_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)codec;
	(void)ctx;
	RV_ASSERT(chunk < CHUNKS);
	return (size_t)chunk * CHUNK_BYTES;
}

/* Means are encoded otherwise, and longer. */
static size_t mean_bytes(void *ctx, uint32_t chunk) {
	return chunk_bytes(ctx, 0, chunk) + MEAN_BYTES - CHUNK_BYTES;
}

static size_t mean_offset(void *ctx, uint32_t chunk) {
	return chunk_offset(ctx, 0, chunk) / CHUNK_BYTES * MEAN_BYTES;
}

static enum rv_err reduce_bytes(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
								struct rv_errtext *et) {
	(void)ctx;
	(void)chunk;
	return hostile_fold(c->data, CHUNK_BYTES, c->n, out, MEAN_BYTES, bad, et);
}

struct node {
	struct document doc;
	struct reduce *reduce;
	void *memory;
	uint8_t *flags;
	uint8_t own[VECTOR_BYTES], reduced[CHUNKS * MEAN_BYTES], held[NET_MAX_ROW][VECTOR_BYTES];
	int64_t now_us;
	bool up[MEMBERS];
};

static void make_document(struct document *d, uint32_t attempt) {
	*d = (struct document){.phase = RUN_REDUCE, .round = 7, .attempt = attempt, .final_round = 9};
	d->n_members = MEMBERS;
	for (uint32_t i = 0; i < MEMBERS; i++)
		d->members[i] = (struct member_ref){.member = 2 * i + 1, .weight = 1 + i};
	d->n_chunks = CHUNKS;
	d->n_ranges = MEMBERS;
	d->ranges[0] = (struct owner_range){.first = 0, .count = 4, .owner = 0};
	d->ranges[1] = (struct owner_range){.first = 4, .count = 5, .owner = SELF};
	d->ranges[2] = (struct owner_range){.first = 9, .count = 2, .owner = 2};
}

static struct node *node_new(void) {
	struct node *n = calloc(1, sizeof *n);
	RV_ASSERT(n);
	n->memory = aligned_alloc(64, (reduce_size() + 63) / 64 * 64);
	n->flags = calloc(1, reduce_flags_bytes(CHUNKS));
	RV_ASSERT(n->memory && n->flags);
	make_document(&n->doc, 1);
	struct reduce_config cfg = {.n_chunks = CHUNKS,
								.codec = {.chunk_bytes = chunk_bytes,
										  .chunk_offset = chunk_offset,
										  .reduce = reduce_bytes,
										  .check = hostile_check,
										  .mean_bytes = mean_bytes,
										  .mean_offset = mean_offset},
								.silence_us = 4000,
								.stall_us = 6000,
								.ping_interval_us = 1000,
								.patience_gather = 1};
	struct reduce_memory mem = {.own = n->own, .reduced = n->reduced, .flags = n->flags};
	for (int i = 0; i < NET_MAX_ROW; i++)
		mem.held[i] = n->held[i];
	const struct reduce_roster roster = reduce_roster_of(&n->doc, n->doc.members[SELF].member);
	n->reduce = reduce_init(n->memory, &cfg, &mem, &roster, 0);
	return n;
}

static void node_free(struct node *n) {
	free(n->flags);
	free(n->memory);
	free(n);
}

static void link_up(struct node *n, int peer) {
	n->up[peer] = true;
	reduce_link_up(n->reduce, n->now_us, peer);
}

static void link_down(struct node *n, int peer, bool fatal) {
	n->up[peer] = false;
	reduce_link_down(n->reduce, n->now_us, peer, fatal);
}

/* The platform's side of the contract: messages come over links that are up. */
static void receive(struct node *n, int from, struct rv_reader *r) {
	uint8_t data[HOSTILE_DATA_MAX];
	struct reduce_msg m = {.type = (uint8_t)(REDUCE_SCATTER + rv_read_u8(r) % 4), .round = 6 + rv_read_u8(r) % 3};
	m.attempt = rv_read_u8(r) % 4;
	hostile_message(r, CHUNKS, data, &m);
	if (!n->up[from])
		return;
	enum rv_err e = reduce_receive(n->reduce, n->now_us, from, &m, NULL);
	RV_ASSERT(e == RV_OK || e == RV_E_PROTOCOL || e == RV_E_CORRUPT);
	if (e != RV_OK)
		link_down(n, from, true);
}

static void drain(struct node *n, int to) {
	struct reduce_msg m;
	for (int i = 0; i < 1000 && reduce_send(n->reduce, n->now_us, to, &m); i++) {
		bool bulk = m.type == REDUCE_SCATTER || m.type == REDUCE_GATHER;
		const uint32_t bytes = m.type == REDUCE_GATHER ? MEAN_BYTES : CHUNK_BYTES;
		RV_ASSERT(m.round == 7 && (!bulk || (m.data_bytes == bytes && m.chunk < CHUNKS)));
		RV_ASSERT(i < 999);
	}
}

static void step(struct node *n, struct rv_reader *r) {
	uint8_t op = rv_read_u8(r);
	int peer = op & 1 ? 2 : 0;
	switch (op >> 1 & 7) {
	case 0:
		link_up(n, peer);
		return;
	case 1:
		link_down(n, peer, rv_read_u8(r) & 1);
		return;
	case 2:
		n->now_us += rv_read_u16(r);
		reduce_tick(n->reduce, n->now_us);
		return;
	case 3:
		if (n->doc.attempt < 3) {
			make_document(&n->doc, n->doc.attempt + 1);
			const struct reduce_roster roster = reduce_roster_of(&n->doc, n->doc.members[SELF].member);
			reduce_restart(n->reduce, &roster, n->now_us);
		}
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
	RV_ASSERT((reduce_suspects(n->reduce) & ~5ull) == 0);
	RV_ASSERT(reduce_info(n->reduce).world == MEMBERS);
	node_free(n);
	return 0;
}
