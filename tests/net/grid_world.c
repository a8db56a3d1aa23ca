/* grid_world.c: see grid_world.h. */
#include "grid_world.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "base/rows.h"
#include "outer/partial_sum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t RUN_TAG = 0x1122334455667788;

/* ---- the codec: as worker/mesh/allreduce.c, on the memory of a node ---- */

static size_t chunk_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)codec;
	const struct grid_world *w = ((struct grid_node *)ctx)->w;
	return w->cfg.codec->encoded_bytes(w->cfg.codec, chunking_len(&w->chunks, chunk));
}

static size_t chunk_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	(void)codec;
	const struct grid_world *w = ((struct grid_node *)ctx)->w;
	return chunking_offset_bytes(&w->chunks, w->cfg.codec, chunk);
}

static size_t sum_bytes(void *ctx, uint32_t chunk) {
	return merge_partial_bytes(chunking_len(&((struct grid_node *)ctx)->w->chunks, chunk));
}

static size_t sum_offset(void *ctx, uint32_t chunk) {
	return merge_partial_bytes((size_t)chunk * ((struct grid_node *)ctx)->w->chunks.chunk_elems);
}

static enum rv_err mean(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
						struct rv_errtext *et) {
	struct grid_world *w = ((struct grid_node *)ctx)->w;
	const struct merge_rule rule = global_merge(&w->cfg);
	*bad = -1;
	w->encodings++;
	return merge_chunk(&rule, c->data, c->weights, c->n, chunking_len(&w->chunks, chunk), w->scratch, NULL, out, NULL,
					   et);
}

static enum rv_err sum(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
					   struct rv_errtext *et) {
	struct grid_node *node = ctx;
	const struct merge_rule rule = global_merge(&node->w->cfg);
	RV_ASSERT(out == NULL);
	*bad = -1;
	return merge_partial(&rule, c->data, c->weights, c->n, chunking_len(&node->w->chunks, chunk), node->w->scratch,
						 node->sums + sum_offset(ctx, chunk), NULL, et);
}

static enum rv_err join(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
						struct rv_errtext *et) {
	struct grid_world *w = ((struct grid_node *)ctx)->w;
	const struct merge_rule rule = global_merge(&w->cfg);
	*bad = -1;
	w->encodings++;
	return merge_join(&rule, c->data, c->weights, c->n, chunking_len(&w->chunks, chunk), w->scratch, NULL, out, et);
}

static enum rv_err check(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	struct grid_world *w = ((struct grid_node *)ctx)->w;
	return w->cfg.codec->decode(w->cfg.codec, data, chunking_len(&w->chunks, chunk), w->scratch, et);
}

static size_t pack(void *ctx, uint32_t chunk, const uint8_t *partial, uint8_t *out) {
	return partial_sum_pack(partial, chunking_len(&((struct grid_node *)ctx)->w->chunks, chunk), out);
}

static enum rv_err unpack(void *ctx, uint32_t chunk, const uint8_t *in, size_t bytes, uint8_t *partial,
						  struct rv_errtext *et) {
	return partial_sum_unpack(in, bytes, chunking_len(&((struct grid_node *)ctx)->w->chunks, chunk), partial, et);
}

/* ---- seals: hashes that name the key ---- */

static void signature_of(const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct rv_hash *root,
						 uint8_t out[NET_SIG_BYTES]) {
	struct rv_hasher h = rv_hasher_of("grid seal");
	rv_hash_update(&h, key, NET_KEY_BYTES);
	rv_hash_update(&h, scope->roster.b, RV_HASH_BYTES);
	rv_hash_u64(&h, scope->round << 32 | scope->attempt);
	rv_hash_u64(&h, scope->kind | (uint64_t)scope->first << 8);
	rv_hash_update(&h, root->b, RV_HASH_BYTES);
	const struct rv_hash sum = rv_hash_final(&h);
	memset(out, 0, NET_SIG_BYTES);
	memcpy(out, sum.b, RV_HASH_BYTES);
}

static void key_of(uint32_t member, uint8_t key[NET_KEY_BYTES]) {
	memset(key, 1 + (int)(member % 251), NET_KEY_BYTES);
	memcpy(key, &member, sizeof member);
}

static void sign(void *ctx, const struct seal_scope *scope, const struct rv_hash *root, struct seal *out) {
	const struct grid_node *node = ctx;
	uint8_t key[NET_KEY_BYTES];
	key_of(node->member, key);
	out->root = *root;
	signature_of(key, scope, root, out->signature);
}

static bool verify(void *ctx, const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope,
				   const struct seal *seal) {
	(void)ctx;
	uint8_t want[NET_SIG_BYTES];
	signature_of(key, scope, &seal->root, want);
	return memcmp(want, seal->signature, sizeof want) == 0;
}

enum { SEAL_VECTORS = NET_MAX_ROW + 1 + NET_MAX_ROWS }; /* leaves of contributions, means, sums */

static size_t hash_bytes(const struct grid_world *w) {
	const size_t n = w->chunks.n_chunks;
	return (merkle_nodes(w->chunks.n_chunks) + SEAL_VECTORS * n) * sizeof(struct rv_hash) + REDUCE_LEAVES_BYTES;
}

static void seal_memory(const struct grid_node *node, struct grid_memory *mem) {
	const size_t n = node->w->chunks.n_chunks;
	struct rv_hash *next = node->hashes + merkle_nodes(node->w->chunks.n_chunks);
	mem->own_nodes = node->hashes;
	for (int i = 0; i < NET_MAX_ROW; i++, next += n)
		mem->leaves[i] = next;
	mem->means = next;
	next += n;
	for (int i = 0; i < NET_MAX_ROWS; i++, next += n)
		mem->sum_leaves[i] = next;
	mem->proof = (uint8_t *)next;
}

/* ---- plans ---- */

static int survivor_with_least(const struct grid_world *w, int row) {
	int best = -1, least = NET_MAX_ROW + 1;
	for (int i = 0; i < w->n; i++) {
		int owned = 0;
		if (w->nodes[i].row != row || !w->nodes[i].alive)
			continue;
		for (int j = 0; j < w->plan.n_columns; j++)
			owned += w->owner[row][j] == i;
		if (owned >= least)
			continue;
		best = i;
		least = owned;
	}
	return best;
}

static int index_in_row(const struct grid_world *w, int node) {
	int index = 0;
	for (int i = 0; i < node; i++)
		index += w->nodes[i].row == w->nodes[node].row && w->nodes[i].alive;
	return index;
}

static void place_row(struct grid_world *w, int row, uint32_t out) {
	struct rows_plan *p = &w->plan;
	uint16_t next = p->first[row];
	for (int i = 0; i < w->n; i++) {
		struct grid_node *node = &w->nodes[i];
		if (node->row != row || !node->alive)
			continue;
		node->out = out >> row & 1;
		if (node->out)
			continue;
		w->node_at[next] = i;
		struct member_ref *ref = &w->members[next++];
		*ref = (struct member_ref){.member = node->member, .weight = 1 + (uint32_t)i % 5, .boot = 1};
		key_of(node->member, ref->key);
		if (w->sealed)
			ref->contribution.root = merkle_root(node->hashes, w->chunks.n_chunks);
	}
	p->first[row + 1] = next;
	for (int j = 0; j < p->n_columns; j++) {
		if (!w->nodes[w->owner[row][j]].alive)
			w->owner[row][j] = survivor_with_least(w, row);
		if (p->first[row + 1] > p->first[row])
			p->columns[j].owner[row] = (uint8_t)index_in_row(w, w->owner[row][j]);
	}
}

static void place_all(struct grid_world *w, uint32_t out) {
	w->plan.members = w->members;
	w->plan.first[0] = 0;
	for (int row = 0; row < w->plan.n_rows; row++)
		place_row(w, row, out);
}

static void plan_first(struct grid_world *w, int row_size) {
	struct rows_plan *p = &w->plan;
	const int n_rows = rows_choose(w->n, row_size), shortest = w->n / n_rows;
	p->n_rows = (uint8_t)n_rows;
	for (int row = 0; row < n_rows; row++) {
		const int first = rows_first(w->n, n_rows, row), length = rows_length(w->n, n_rows, row);
		p->since[row] = 1;
		for (int i = 0; i < length; i++)
			w->nodes[first + i].row = row;
		for (int j = 0; j < NET_MAX_ROW; j++)
			w->owner[row][j] = first + j % length;
	}
	const int columns = (uint32_t)shortest < w->chunks.n_chunks ? shortest : (int)w->chunks.n_chunks;
	rows_plan_columns(p, w->chunks.n_chunks, columns);
	place_all(w, 0);
}

/* One row: a document as it is without rows. */
static void view_one_row(const struct grid_world *w, struct document *d) {
	const struct rows_plan *p = &w->plan;
	d->n_rows = 1;
	d->n_members = p->first[1];
	memcpy(d->members, w->members, d->n_members * sizeof d->members[0]);
	d->n_ranges = p->n_columns;
	for (int j = 0; j < p->n_columns; j++)
		d->ranges[j] = (struct owner_range){p->columns[j].first, p->columns[j].count, p->columns[j].owner[0]};
	d->n_chunks = w->chunks.n_chunks;
}

static void make_view(struct grid_world *w, int node) {
	struct document *d = &w->view;
	int place = 0;
	memset(d, 0, offsetof(struct document, ranges));
	d->phase = RUN_REDUCE;
	d->round = w->round;
	d->attempt = w->attempt;
	d->roster_hash = rv_hash_of(&w->attempt, sizeof w->attempt);
	if (w->plan.n_rows == 1) {
		view_one_row(w, d);
		return;
	}
	while (w->node_at[place] != node)
		place++;
	rows_view(&w->plan, place, d);
}

/* ---- links ---- */

static int *link_slot(const struct grid_world *w, int a, int b) {
	return &w->link_at[(size_t)(a < b ? a : b) * (size_t)w->n + (size_t)(a < b ? b : a)];
}

static void add_link(struct grid_world *w, int a, int b) {
	int *at = link_slot(w, a, b);
	if (a == b || *at >= 0)
		return;
	if (w->n_links == w->room_links) {
		w->room_links = 2 * w->room_links + 64;
		w->links = realloc(w->links, (size_t)w->room_links * sizeof *w->links);
		RV_ASSERT(w->links != NULL);
	}
	*at = w->n_links;
	w->links[w->n_links++] =
		(struct grid_link){.a = (uint16_t)(a < b ? a : b), .b = (uint16_t)(a < b ? b : a), .up = true};
}

static void add_links(struct grid_world *w) {
	for (int a = 0; a < w->n; a++)
		for (int b = a + 1; b < w->n && w->nodes[b].row == w->nodes[a].row; b++)
			add_link(w, a, b);
	for (int j = 0; j < w->plan.n_columns; j++)
		for (int r = 0; r < w->plan.n_rows; r++)
			for (int s = r + 1; s < w->plan.n_rows; s++)
				if (w->owner[r][j] >= 0 && w->owner[s][j] >= 0)
					add_link(w, w->owner[r][j], w->owner[s][j]);
}

static void drop_frames(struct grid_link *l) {
	for (int way = 0; way < 2; way++)
		for (; l->count[way] > 0; l->count[way]--) {
			free(l->frames[way][l->first[way]].body);
			l->first[way] = (l->first[way] + 1) % GRID_WINDOW;
		}
}

static void tell(struct grid_world *w, int node, int peer, bool up, bool fatal) {
	const struct grid_node *n = &w->nodes[node];
	const int at = n->alive && n->grid ? grid_peer_of(n->grid, w->nodes[peer].member) : -1;
	if (at >= 0 && up)
		grid_link_up(n->grid, w->now_us, at);
	else if (at >= 0)
		grid_link_down(n->grid, w->now_us, at, fatal);
}

static void set_link(struct grid_world *w, struct grid_link *l, bool up, bool fatal) {
	if (!up)
		drop_frames(l);
	l->up = up;
	tell(w, l->a, l->b, up, fatal);
	tell(w, l->b, l->a, up, fatal);
}

void grid_world_flap(struct grid_world *w, double share) {
	for (int i = 0; i < w->n_links; i++) {
		struct grid_link *l = &w->links[i];
		if (!l->up || !w->nodes[l->a].alive || !w->nodes[l->b].alive || rv_rng_double(&w->rng) >= share)
			continue;
		set_link(w, l, false, rv_rng_below(&w->rng, 2) == 0);
		set_link(w, l, true, false);
	}
}

void grid_world_delay(struct grid_world *w, double share) {
	for (int i = 0; i < w->n_links; i++)
		if (rv_rng_double(&w->rng) < share) {
			w->links[i].late = true;
			w->links[i].up = false;
		}
}

/* ---- nodes ---- */

/* Zeroed memory of which only what is touched is taken. */
static void *lazy_memory(size_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	RV_ASSERT(p != MAP_FAILED);
	return p;
}

static void init_node(struct grid_world *w, struct grid_node *node, int i, bool in_rows) {
	const size_t payload = chunking_total_bytes(&w->chunks, w->cfg.codec), partial = merge_partial_bytes(w->chunks.n);
	*node = (struct grid_node){.w = w, .member = (uint32_t)(7 * (in_rows ? i ^ 1 : i) + 3), .alive = true};
	node->memory = lazy_memory(grid_size());
	node->own = malloc(payload);
	node->reduced = malloc(payload);
	node->held = lazy_memory(NET_MAX_ROW * payload);
	node->sums = lazy_memory((1 + NET_MAX_ROWS) * partial);
	node->flags = lazy_memory(grid_flags_bytes(w->chunks.n_chunks));
	RV_ASSERT(node->own && node->reduced);
	struct rv_rng rng = rv_rng_of((uint64_t)i, 5);
	float *x = malloc(w->chunks.n * sizeof *x);
	for (size_t k = 0; k < w->chunks.n; k++)
		x[k] = (float)(rv_rng_double(&rng) * 2 - 1) * (i % 7 == 3 ? 40 : 1);
	for (uint32_t c = 0; c < w->chunks.n_chunks; c++)
		RV_ASSERT(w->cfg.codec->encode(w->cfg.codec, x + (size_t)c * w->chunks.chunk_elems, chunking_len(&w->chunks, c),
									   node->own + chunk_offset(node, 0, c), NULL) == RV_OK);
	free(x);
}

struct grid_world *grid_world_new(int n, int row_size, uint32_t n_chunks, const struct merge_ops *rule, uint64_t seed) {
	return grid_world_of(n, row_size, n_chunks, rule, &codec_int8, seed);
}

struct grid_world *grid_world_of(int n, int row_size, uint32_t n_chunks, const struct merge_ops *rule,
								 const struct codec *codec, uint64_t seed) {
	const size_t elems = codec->block > GRID_CHUNK_ELEMS ? codec->block : GRID_CHUNK_ELEMS;
	struct grid_world *w = calloc(1, sizeof *w);
	RV_ASSERT(w && n <= GRID_MAX_NODES && n_chunks <= GRID_MAX_CHUNKS);
	w->n = n;
	w->rng = rv_rng_of(seed, 1);
	w->now_us = 1000;
	w->round = 5;
	w->attempt = 1;
	w->liar = -1;
	w->chunks = chunking_of((size_t)n_chunks * elems - 56, elems);
	w->cfg = (struct global_config){.n = w->chunks.n,
									.chunks = w->chunks,
									.codec = codec,
									.merge = rule,
									.merge_params = {.clip = 1.25, .trim_share = 0.25}};
	const struct merge_rule merge = global_merge(&w->cfg);
	w->scratch = malloc(merge_scratch(&merge, elems, NET_MAX_ROW) * sizeof(float));
	w->sums = malloc(2 * merge_partial_bytes(elems));
	w->nodes = calloc((size_t)n, sizeof *w->nodes);
	w->link_at = malloc((size_t)n * (size_t)n * sizeof(int));
	RV_ASSERT(w->scratch && w->sums && w->nodes && w->link_at);
	memset(w->link_at, -1, (size_t)n * (size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		init_node(w, &w->nodes[i], i, rows_choose(n, row_size) > 1);
	plan_first(w, row_size);
	add_links(w);
	return w;
}

void grid_world_seal(struct grid_world *w) {
	w->sealed = true;
	for (int i = 0; i < w->n; i++) {
		struct grid_node *node = &w->nodes[i];
		node->hashes = lazy_memory(hash_bytes(w));
		for (uint32_t c = 0; c < w->chunks.n_chunks; c++)
			node->hashes[c] = merkle_leaf(c, node->own + chunk_offset(node, 0, c), chunk_bytes(node, 0, c));
		merkle_build(node->hashes, w->chunks.n_chunks);
	}
	place_all(w, 0);
}

void grid_world_free(struct grid_world *w) {
	const size_t payload = chunking_total_bytes(&w->chunks, w->cfg.codec), partial = merge_partial_bytes(w->chunks.n);
	for (int i = 0; i < w->n_links; i++)
		drop_frames(&w->links[i]);
	for (int i = 0; i < w->n; i++) {
		free(w->nodes[i].own);
		free(w->nodes[i].reduced);
		if (w->nodes[i].hashes)
			(void)munmap(w->nodes[i].hashes, hash_bytes(w));
		(void)munmap(w->nodes[i].memory, grid_size());
		(void)munmap(w->nodes[i].held, NET_MAX_ROW * payload);
		(void)munmap(w->nodes[i].sums, (1 + NET_MAX_ROWS) * partial);
		(void)munmap(w->nodes[i].flags, grid_flags_bytes(w->chunks.n_chunks));
	}
	free(w->nodes);
	free(w->links);
	free(w->link_at);
	free(w->scratch);
	free(w->sums);
	free(w);
}

static struct grid *new_grid(struct grid_world *w, struct grid_node *node) {
	const size_t payload = chunking_total_bytes(&w->chunks, w->cfg.codec), partial = merge_partial_bytes(w->chunks.n);
	const struct grid_config cfg = {.self_member = node->member,
									.n_chunks = w->chunks.n_chunks,
									.codec = {.row = {.ctx = node,
													  .chunk_bytes = chunk_bytes,
													  .chunk_offset = chunk_offset,
													  .reduce = mean,
													  .check = check},
											  .sum_bytes = sum_bytes,
											  .sum_offset = sum_offset,
											  .sum = sum,
											  .join = join,
											  .pack = pack,
											  .unpack = unpack},
									.seals = {.ctx = node, .sign = sign, .verify = w->sealed ? verify : NULL},
									.silence_us = GRID_SILENCE_US,
									.stall_us = GRID_STALL_US,
									.ping_interval_us = GRID_PING_US};
	struct grid_memory mem = {.own = node->own, .reduced = node->reduced, .sum = node->sums, .flags = node->flags};
	for (size_t i = 0; i < NET_MAX_ROW; i++)
		mem.held[i] = node->held + i * payload;
	for (size_t i = 0; i < NET_MAX_ROWS; i++)
		mem.row_sums[i] = node->sums + (1 + i) * partial;
	if (w->sealed)
		seal_memory(node, &mem);
	mem.packed = w->sums;
	mem.unpacked = w->sums + merge_partial_bytes(w->chunks.chunk_elems);
	return grid_init(node->memory, &cfg, &mem, &w->view, w->now_us);
}

void grid_world_start(struct grid_world *w, int i) {
	struct grid_node *node = &w->nodes[i];
	if (!node->alive || node->out || node->attempt == w->attempt)
		return;
	node->attempt = w->attempt;
	make_view(w, i);
	if (node->grid) {
		RV_ASSERT(grid_continues(node->grid, &w->view));
		grid_restart(node->grid, &w->view, w->now_us);
	} else {
		node->grid = new_grid(w, node);
	}
	for (int k = 0; k < w->n_links; k++) {
		const struct grid_link *l = &w->links[k];
		if (l->up && (l->a == i || l->b == i))
			tell(w, i, l->a == i ? l->b : l->a, true, false);
	}
}

void grid_world_kill(struct grid_world *w, int node, bool reset) {
	w->nodes[node].alive = false;
	for (int i = 0; i < w->n_links; i++) {
		struct grid_link *l = &w->links[i];
		if (l->a != node && l->b != node)
			continue;
		if (reset)
			set_link(w, l, false, true);
		else
			drop_frames(l);
	}
}

void grid_world_next_attempt(struct grid_world *w, uint32_t out) {
	uint16_t length[NET_MAX_ROWS];
	for (int row = 0; row < w->plan.n_rows; row++)
		length[row] = w->plan.first[row + 1] - w->plan.first[row];
	w->attempt++;
	place_all(w, out);
	for (int row = 0; row < w->plan.n_rows; row++)
		if (w->plan.first[row + 1] - w->plan.first[row] != length[row] && !w->forget_since)
			w->plan.since[row] = w->attempt;
	for (int i = 0; i < w->n; i++)
		if (w->nodes[i].out)
			w->nodes[i].grid = NULL;
	add_links(w);
}

/* ---- events ---- */

static bool pull(struct grid_world *w, struct grid_link *l, int way) {
	const struct grid_node *from = &w->nodes[way == 0 ? l->a : l->b], *to = &w->nodes[way == 0 ? l->b : l->a];
	if (!from->alive || !from->grid || !l->up || l->count[way] == GRID_WINDOW)
		return false;
	const int peer = grid_peer_of(from->grid, to->member);
	const bool awaited = peer >= 0 && grid_is_awaited(from->grid, peer);
	struct reduce_msg m;
	if (peer < 0 || !grid_send(from->grid, w->now_us, peer, &m))
		return false;
	if (m.type == REDUCE_SCATTER || m.type == REDUCE_GATHER)
		RV_ASSERT(awaited == (m.column || m.type == REDUCE_SCATTER)); /* row means can wait, nothing else */
	const bool lies = w->liar >= 0 && from == &w->nodes[w->liar] && m.column;
	if (lies && w->mute && m.type == REDUCE_SUMS)
		return true; /* it is lost */
	struct grid_frame *f = &l->frames[way][(l->first[way] + l->count[way]++) % GRID_WINDOW];
	const struct frame_header h = frame_reduce_encode(&m, RUN_TAG);
	frame_header_encode(&h, f->header);
	f->bytes = m.data_bytes;
	f->body = malloc(m.data_bytes + 1);
	RV_ASSERT(f->body != NULL);
	if (m.data_bytes > 0)
		memcpy(f->body, m.data, m.data_bytes);
	if (lies && !w->mute && m.type == REDUCE_SCATTER)
		f->body[m.data_bytes - 4] ^= 1; /* another value than it has signed */
	return true;
}

static bool deliver(struct grid_world *w, struct grid_link *l, int way) {
	const struct grid_node *from = &w->nodes[way == 0 ? l->a : l->b], *to = &w->nodes[way == 0 ? l->b : l->a];
	if (l->count[way] == 0 || !to->alive)
		return false;
	const struct grid_frame f = l->frames[way][l->first[way]];
	l->first[way] = (l->first[way] + 1) % GRID_WINDOW;
	l->count[way]--;
	w->delivered++;
	struct frame_header h;
	frame_header_decode(f.header, &h);
	w->data_frames += frame_is_bulk(h.type);
	RV_ASSERT(frame_header_invalid(&h, RUN_TAG, FRAME_LINK_OPEN) == NULL);
	const int peer = to->grid ? grid_peer_of(to->grid, from->member) : -1;
	struct reduce_msg m;
	struct rv_errtext et = {0};
	frame_reduce_decode(&h, f.body, &m);
	const bool refused = peer >= 0 && grid_receive(to->grid, w->now_us, peer, &m, &et) != RV_OK;
	w->refused += refused;
	if (refused && w->liar < 0) {
		(void)fprintf(stderr, "member %u refused %s from %u: %s\n", to->member, frame_type_name(h.type), from->member,
					  et.text);
		abort();
	}
	free(f.body);
	return true;
}

static bool on_link(struct grid_world *w, int i, uint32_t order) {
	struct grid_link *l = &w->links[i];
	bool any = false;
	for (uint32_t k = 0; k < 4 && !any; k++) {
		const uint32_t e = (order + k) & 3;
		any = e & 1 ? deliver(w, l, (int)(e >> 1)) : pull(w, l, (int)(e >> 1));
	}
	return any;
}

/* One event on every link, from a random one on; starts nodes that lack the attempt. */
static bool sweep(struct grid_world *w) {
	bool any = false;
	for (int i = 0; i < w->n; i++) {
		any = any || (w->nodes[i].alive && !w->nodes[i].out && w->nodes[i].attempt != w->attempt);
		grid_world_start(w, i);
	}
	const int first = w->n_links > 0 ? (int)rv_rng_below(&w->rng, (uint64_t)w->n_links) : 0;
	for (int i = 0; i < w->n_links; i++)
		any |= on_link(w, (first + i) % w->n_links, (uint32_t)rv_rng_below(&w->rng, 4));
	return any;
}

bool grid_world_step(struct grid_world *w, uint64_t events) {
	for (uint64_t k = 0; k < events; k++) {
		bool any = false;
		for (int tries = 0; tries < 2 * w->n_links + 8 && !any; tries++) {
			const uint64_t what = rv_rng_below(&w->rng, (uint64_t)(w->n_links + 1 + w->n / 8));
			if (what < (uint64_t)w->n_links)
				any = on_link(w, (int)what, (uint32_t)rv_rng_below(&w->rng, 4));
			else
				grid_world_start(w, (int)rv_rng_below(&w->rng, (uint64_t)w->n));
		}
		if (!any && !sweep(w))
			return false;
	}
	return true;
}

void grid_world_pass_time(struct grid_world *w) {
	int64_t next = INT64_MAX;
	for (int i = 0; i < w->n; i++)
		if (w->nodes[i].alive && w->nodes[i].grid) {
			const int64_t at = grid_deadline_us(w->nodes[i].grid);
			next = at < next ? at : next;
		}
	for (int i = 0; i < w->n_links; i++)
		if (w->links[i].late && rv_rng_below(&w->rng, 2) == 0) {
			w->links[i].late = false;
			set_link(w, &w->links[i], true, false);
		}
	if (next == INT64_MAX)
		return;
	RV_ASSERT(next > w->now_us);
	w->now_us = next;
	for (int i = 0; i < w->n; i++)
		if (w->nodes[i].alive && w->nodes[i].grid)
			grid_tick(w->nodes[i].grid, w->now_us);
}

static bool settled(const struct grid_world *w) {
	for (int i = 0; i < w->n; i++) {
		const struct grid_node *node = &w->nodes[i];
		if (node->alive && !node->out && (node->attempt != w->attempt || !grid_done(node->grid)))
			return false;
	}
	return true;
}

bool grid_world_run(struct grid_world *w, int ticks) {
	for (int t = 0;; t++) {
		while (sweep(w))
			;
		if (settled(w) || t == ticks)
			return settled(w);
		grid_world_pass_time(w);
	}
}

/* ---- results ---- */

bool grid_world_is_right(struct grid_world *w) {
	const struct rows_plan *p = &w->plan;
	const struct merge_rule rule = global_merge(&w->cfg);
	struct merge_layout l = {.n_rows = 0};
	uint32_t weights[GRID_MAX_NODES];
	const uint8_t *in[GRID_MAX_NODES];
	const int n = p->first[p->n_rows];
	bool right = true;
	for (int row = 0; row < p->n_rows; row++)
		if (p->first[row + 1] > p->first[row])
			l.length[l.n_rows++] = p->first[row + 1] - p->first[row];
	float *scratch = malloc(merge_roster_scratch(&rule, &l, w->chunks.chunk_elems) * sizeof *scratch);
	uint8_t *want = malloc(8 * w->chunks.chunk_elems);
	for (uint32_t c = 0; c < w->chunks.n_chunks; c++) {
		const size_t at = chunk_offset(&w->nodes[0], 0, c);
		for (int i = 0; i < n; i++) {
			in[i] = w->nodes[w->node_at[i]].own + at;
			weights[i] = w->members[i].weight;
		}
		RV_ASSERT(merge_roster(&rule, &l, in, weights, chunking_len(&w->chunks, c), scratch, NULL, want, NULL) ==
				  RV_OK);
		for (int i = 0; i < n; i++)
			right = right && (!w->nodes[w->node_at[i]].alive ||
							  memcmp(w->nodes[w->node_at[i]].reduced + at, want, chunk_bytes(&w->nodes[0], 0, c)) == 0);
	}
	free(want);
	free(scratch);
	return right;
}

struct reduce_info grid_world_info(const struct grid_world *w) {
	struct reduce_info sum = {0};
	for (int i = 0; i < w->n; i++) {
		if (!w->nodes[i].grid || !w->nodes[i].alive)
			continue;
		const struct reduce_info one = grid_info(w->nodes[i].grid);
		sum.world = one.world;
		sum.tx_bytes += one.tx_bytes;
		sum.rx_bytes += one.rx_bytes;
		sum.resent_bytes += one.resent_bytes;
	}
	return sum;
}

int grid_world_most_links(const struct grid_world *w) {
	int most = 0;
	for (int i = 0; i < w->n; i++) {
		const int links = w->nodes[i].grid ? grid_peers(w->nodes[i].grid) - 1 : 0;
		most = links > most ? links : most;
	}
	return most;
}
