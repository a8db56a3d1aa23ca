/* reduce_world.c: see reduce_world.h. */
#include "reduce_world.h"

#include "base/assert.h"
#include "base/slow_lines.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t RUN_TAG = 0x1122334455667788;

/* ---- codec: bytes, "averaged" by a fold that any change of order, weight or terms would show ----
 * */

/* Codec n takes n bytes fewer. */
static size_t codec_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	return world_chunk_bytes(ctx, chunk) - codec;
}

static size_t codec_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)ctx;
	(void)codec;
	return (size_t)chunk * WORLD_CHUNK_BYTES;
}

static size_t mean_bytes(void *ctx, uint32_t chunk) {
	return world_mean_bytes(ctx, chunk);
}

static size_t mean_offset(void *ctx, uint32_t chunk) {
	return (size_t)chunk * (WORLD_CHUNK_BYTES + ((const struct world *)ctx)->mean_more);
}

static enum rv_err codec_reduce(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
								struct rv_errtext *et) {
	for (int i = 0; i < c->n; i++) {
		if (c->data[i][0] < WORLD_CORRUPT)
			continue;
		*bad = c->data[i][0] == WORLD_OUT_OF_MEMORY ? -1 : i;
		enum rv_err e = c->data[i][0] == WORLD_CORRUPT ? RV_E_CORRUPT
						: c->data[i][0] == WORLD_HUGE  ? RV_E_RANGE
													   : RV_E_NOMEM;
		return rv_fail(et, e, "contribution %d of chunk %u", i, chunk);
	}
	for (size_t k = 0; k < world_mean_bytes(ctx, chunk); k++) {
		unsigned sum = 0;
		for (int i = 0; i < c->n; i++)
			sum = sum * 31 + c->weights[i] * c->data[i][k % codec_bytes(ctx, c->codecs[i], chunk)] + 1;
		out[k] = (uint8_t)(sum ^ (sum >> 8));
	}
	return RV_OK;
}

static enum rv_err codec_check(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	(void)ctx;
	static const uint8_t undecodable[4] = {WORLD_CORRUPT, WORLD_CORRUPT, WORLD_CORRUPT, WORLD_CORRUPT};
	bool fine = memcmp(data, undecodable, sizeof undecodable) != 0;
	return fine ? RV_OK : rv_fail(et, RV_E_CORRUPT, "the mean of chunk %u", chunk);
}

size_t world_chunk_bytes(const struct world *w, uint32_t chunk) {
	return chunk + 1 == w->n_chunks ? WORLD_CHUNK_BYTES - 7 : WORLD_CHUNK_BYTES;
}

size_t world_mean_bytes(const struct world *w, uint32_t chunk) {
	return world_chunk_bytes(w, chunk) + w->mean_more;
}

static void fill_own(struct world_node *node) {
	struct rv_rng rng = rv_rng_of(node->member, 99);
	for (size_t i = 0; i < sizeof node->own; i++)
		node->own[i] = (uint8_t)rv_rng_below(&rng, WORLD_CORRUPT);
}

/* ---- documents ---- */

static void own_chunks(struct document *d, const uint16_t *owner, uint32_t n_chunks) {
	d->n_ranges = 0;
	for (uint32_t c = 0; c < n_chunks; c++) {
		struct owner_range *last = d->n_ranges > 0 ? &d->ranges[d->n_ranges - 1] : NULL;
		if (last != NULL && last->owner == owner[c])
			last->count++;
		else
			d->ranges[d->n_ranges++] = (struct owner_range){.first = c, .count = 1, .owner = owner[c]};
	}
}

static void first_document(struct world *w) {
	struct document *d = &w->doc;
	*d = (struct document){.phase = RUN_REDUCE, .seq = 1, .round = 5, .attempt = 1, .final_round = 9};
	d->n_chunks = w->n_chunks;
	d->n_members = (uint16_t)w->n_nodes;
	for (int i = 0; i < w->n_nodes; i++) {
		d->members[i].member = w->nodes[i].member;
		d->members[i].weight = 1 + (uint32_t)i % 3;
	}
	uint16_t owner[WORLD_MAX_CHUNKS];
	for (uint32_t c = 0; c < w->n_chunks; c++)
		owner[c] = (uint16_t)rv_rng_below(&w->rng, (uint64_t)w->n_nodes);
	own_chunks(d, owner, w->n_chunks);
}

static int node_of_member(const struct world *w, uint32_t member) {
	return (int)((member - 1) / 3) % w->n_nodes;
}

int world_node_at(const struct world *w, int index) {
	return node_of_member(w, w->doc.members[index].member);
}

int world_index_of(const struct world *w, int node) {
	return document_find(&w->doc, w->nodes[node].member);
}

void world_next_attempt(struct world *w) {
	struct document old = w->doc, *d = &w->doc;
	uint16_t owner[WORLD_MAX_CHUNKS], index_of[NET_MAX_ROW];
	d->attempt++;
	d->seq++;
	d->n_members = 0;
	for (int i = 0; i < old.n_members; i++) {
		index_of[i] = UINT16_MAX;
		if (!w->nodes[node_of_member(w, old.members[i].member)].alive)
			continue;
		index_of[i] = d->n_members;
		d->members[d->n_members++] = old.members[i];
	}
	for (int g = 0; g < old.n_ranges; g++)
		for (uint32_t c = old.ranges[g].first; c < old.ranges[g].first + old.ranges[g].count; c++) {
			uint16_t kept = index_of[old.ranges[g].owner];
			owner[c] = (uint16_t)(kept != UINT16_MAX ? kept : c % d->n_members);
		}
	own_chunks(d, owner, w->n_chunks);
}

/* ---- nodes and links ---- */

struct world *world_new(int n_nodes, uint32_t n_chunks, uint64_t seed) {
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	RV_ASSERT(n_nodes <= WORLD_MAX_NODES && n_chunks <= WORLD_MAX_CHUNKS);
	RV_ASSERT(reduce_flags_bytes(n_chunks) <= sizeof w->nodes[0].flags);
	w->n_nodes = n_nodes;
	w->n_chunks = n_chunks;
	w->mean_more = seed % 3 == 2 ? WORLD_MEAN_MORE : 0;
	w->rng = rv_rng_of(seed, 1);
	w->now_us = 1000;
	for (int i = 0; i < n_nodes; i++) {
		struct world_node *node = &w->nodes[i];
		node->member = (uint32_t)(3 * i + 1);
		node->alive = true;
		node->memory = calloc(1, reduce_size());
		assert_non_null(node->memory);
		fill_own(node);
		for (int j = 0; j < n_nodes; j++)
			w->up[i][j] = i != j;
	}
	first_document(w);
	return w;
}

void world_free(struct world *w) {
	for (int i = 0; i < w->n_nodes; i++)
		free(w->nodes[i].memory);
	free(w);
}

static void init_node(struct world *w, struct world_node *node) {
	struct reduce_config cfg = {.n_chunks = w->n_chunks,
								.codec = {.ctx = w,
										  .chunk_bytes = codec_bytes,
										  .chunk_offset = codec_offset,
										  .reduce = codec_reduce,
										  .check = codec_check},
								.silence_us = WORLD_SILENCE_US,
								.stall_us = WORLD_STALL_US,
								.ping_interval_us = WORLD_PING_US,
								.patience_gather = 1};
	if (w->mean_more > 0) {
		cfg.codec.mean_bytes = mean_bytes;
		cfg.codec.mean_offset = mean_offset;
	}
	struct reduce_memory mem = {.own = node->own, .reduced = node->reduced, .flags = node->flags};
	for (int i = 0; i < w->n_nodes; i++)
		mem.held[i] = node->held[i];
	memset(node->reduced, 0xdd, sizeof node->reduced);
	const struct reduce_roster roster = reduce_roster_of(&w->doc, node->member);
	node->reduce = reduce_init(node->memory, &cfg, &mem, &roster, w->now_us);
}

void world_start(struct world *w, int n) {
	struct world_node *node = &w->nodes[n];
	if (!node->alive || node->attempt == w->doc.attempt)
		return;
	node->attempt = w->doc.attempt;
	if (node->started) {
		const struct reduce_roster roster = reduce_roster_of(&w->doc, node->member);
		reduce_restart(node->reduce, &roster, w->now_us);
		return;
	}
	init_node(w, node);
	node->started = true;
	for (int i = 0; i < w->doc.n_members; i++) {
		int other = world_node_at(w, i);
		if (other != n && w->up[n][other])
			reduce_link_up(node->reduce, w->now_us, i);
	}
}

/* The roster index of `peer` in the document that `node` has; the old rosters are supersets in the
 * same order. */
static int index_for(const struct world *w, int node, int peer) {
	if (w->nodes[node].attempt == w->doc.attempt)
		return world_index_of(w, peer);
	return w->nodes[node].started && w->nodes[node].attempt == 1 ? peer : -1;
}

static void tell_link(struct world *w, int node, int peer, bool up, bool fatal) {
	struct world_node *n = &w->nodes[node];
	int index = n->alive && n->started ? index_for(w, node, peer) : -1;
	if (index < 0)
		return;
	if (up)
		reduce_link_up(n->reduce, w->now_us, index);
	else
		reduce_link_down(n->reduce, w->now_us, index, fatal);
}

static void cut(struct world *w, int a, int b, bool fatal) {
	w->links[a][b].count = w->links[b][a].count = 0;
	w->up[a][b] = w->up[b][a] = false;
	tell_link(w, a, b, false, fatal);
	tell_link(w, b, a, false, fatal);
}

void world_flap(struct world *w, int a, int b) {
	if (!w->up[a][b])
		return;
	cut(w, a, b, rv_rng_below(&w->rng, 2) == 0);
	w->up[a][b] = w->up[b][a] = true;
	tell_link(w, a, b, true, false);
	tell_link(w, b, a, true, false);
}

void world_kill(struct world *w, int node, bool reset) {
	w->nodes[node].alive = false;
	for (int i = 0; i < w->n_nodes; i++) {
		if (i == node)
			continue;
		if (reset)
			cut(w, node, i, true);
		else
			w->links[node][i].count = 0;
	}
}

/* ---- events ---- */

static bool pull(struct world *w, int from, int to) {
	struct world_node *node = &w->nodes[from];
	struct world_link *link = &w->links[from][to];
	if (!node->alive || !node->started || !w->up[from][to] || link->count == WORLD_WINDOW)
		return false;
	int index = index_for(w, from, to);
	struct reduce_msg m;
	if (index < 0 || !reduce_send(node->reduce, w->now_us, index, &m))
		return false;
	struct world_frame *f = &link->frames[(link->first + link->count) % WORLD_WINDOW];
	link->count++;
	struct frame_header h = frame_reduce_encode(&m, RUN_TAG);
	frame_header_encode(&h, f->header);
	RV_ASSERT(m.data_bytes <= sizeof f->body);
	if (m.data_bytes > 0)
		memcpy(f->body, m.data, m.data_bytes);
	return true;
}

static bool deliver(struct world *w, int from, int to) {
	struct world_node *node = &w->nodes[to];
	struct world_link *link = &w->links[from][to];
	if (link->count == 0 || !node->alive)
		return false;
	struct world_frame f = link->frames[link->first];
	link->first = (link->first + 1) % WORLD_WINDOW;
	link->count--;
	struct frame_header h;
	frame_header_decode(f.header, &h);
	assert_null(frame_header_invalid(&h, RUN_TAG, FRAME_LINK_OPEN));
	w->delivered++;
	w->data_frames += h.type == FRAME_SCATTER || h.type == FRAME_GATHER;
	int index = index_for(w, to, from);
	if (!node->started || index < 0)
		return true; /* not initialised: the platform drops it */
	struct reduce_msg m;
	struct rv_errtext et = {0};
	frame_reduce_decode(&h, f.body, &m);
	if (reduce_receive(node->reduce, w->now_us, index, &m, &et) != RV_OK)
		fail_msg("node %d refused %s from %d: %s", to, frame_type_name(h.type), from, et.text);
	return true;
}

/* Event number `e` of 2 n^2 + n: pulls, deliveries, starts. */
static bool try_event(struct world *w, unsigned e) {
	unsigned n = (unsigned)w->n_nodes, pair = e % (n * n);
	int from = (int)(pair / n), to = (int)(pair % n);
	if (e < n * n)
		return from != to && pull(w, from, to);
	if (e < 2 * n * n)
		return from != to && deliver(w, from, to);
	struct world_node *node = &w->nodes[e - 2 * n * n];
	if (!node->alive || node->attempt == w->doc.attempt)
		return false;
	world_start(w, (int)(e - 2 * n * n));
	return true;
}

bool world_step(struct world *w) {
	unsigned n = (unsigned)w->n_nodes, events = 2 * n * n + n;
	unsigned first = (unsigned)rv_rng_below(&w->rng, events);
	/* An odd stride coprime to the count visits all of them in an order that differs from step to
	 * step. */
	unsigned stride = 1 + (unsigned)rv_rng_below(&w->rng, events - 1);
	while (stride > 1) {
		unsigned a = events, b = stride;
		while (b != 0) {
			unsigned t = a % b;
			a = b;
			b = t;
		}
		if (a == 1)
			break;
		stride--;
	}
	for (unsigned k = 0; k < events; k++)
		if (try_event(w, (first + k * stride) % events))
			return true;
	return false;
}

void world_pass_time(struct world *w) {
	int64_t next = INT64_MAX;
	for (int i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].alive && w->nodes[i].started) {
			int64_t deadline = reduce_deadline_us(w->nodes[i].reduce);
			next = deadline < next ? deadline : next;
		}
	if (next == INT64_MAX)
		return;
	assert_true(next > w->now_us);
	w->now_us = next;
	for (int i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].alive && w->nodes[i].started)
			reduce_tick(w->nodes[i].reduce, w->now_us);
}

static bool settled(const struct world *w) {
	for (int i = 0; i < w->n_nodes; i++) {
		const struct world_node *node = &w->nodes[i];
		if (node->alive && (node->attempt != w->doc.attempt || !reduce_done(node->reduce)))
			return false;
	}
	return true;
}

bool world_run(struct world *w, int ticks) {
	for (int t = 0;; t++) {
		while (world_step(w))
			;
		if (settled(w) || t == ticks)
			return settled(w);
		world_pass_time(w);
	}
}

void world_check_result(const struct world *w) {
	uint8_t want[WORLD_CHUNK_BYTES + WORLD_MEAN_MORE];
	const uint8_t *data[WORLD_MAX_NODES];
	uint32_t weights[WORLD_MAX_NODES];
	uint8_t codecs[WORLD_MAX_NODES];
	int bad;
	for (uint32_t c = 0; c < w->n_chunks; c++) {
		struct reduce_inputs in = {.data = data, .weights = weights, .codecs = codecs};
		for (int i = 0; i < w->doc.n_members; i++) {
			const struct member_ref *m = &w->doc.members[i];
			if (!slow_contributes(m->part, m->member, w->doc.round, c))
				continue;
			data[in.n] = w->nodes[world_node_at(w, i)].own + codec_offset(NULL, 0, c);
			weights[in.n] = m->weight;
			codecs[in.n++] = m->codec;
		}
		assert_int_equal(codec_reduce((void *)(uintptr_t)w, c, &in, want, &bad, NULL), RV_OK);
		for (int i = 0; i < w->n_nodes; i++)
			if (w->nodes[i].alive)
				assert_memory_equal(w->nodes[i].reduced + mean_offset((void *)(uintptr_t)w, c), want,
									world_mean_bytes(w, c));
	}
}
