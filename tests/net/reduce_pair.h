/* reduce_pair.h: one node of three (node 0), to which a test hands the messages of the other two by
 * hand. */
#ifndef RV_TESTS_NET_REDUCE_PAIR_H
#define RV_TESTS_NET_REDUCE_PAIR_H

#include "reduce_world.h"

struct pair {
	struct world *w;
	struct reduce *r; /* node 0 */
};

static inline struct pair pair_new(uint32_t n_chunks) {
	struct pair p = {.w = world_new(3, n_chunks, 3)};
	for (uint32_t c = 0; c < n_chunks; c++) /* chunk c is owned by c % 3 */
		p.w->doc.ranges[c] = (struct owner_range){.first = c, .count = 1, .owner = (uint16_t)(c % 3)};
	p.w->doc.n_ranges = (uint16_t)n_chunks;
	world_start(p.w, 0);
	p.r = p.w->nodes[0].reduce;
	return p;
}

static inline struct reduce_msg chunk_msg(const struct pair *p, uint8_t type, int from, uint32_t chunk) {
	return (struct reduce_msg){.type = type,
							   .round = p->w->doc.round,
							   .attempt = 1,
							   .chunk = chunk,
							   .data = p->w->nodes[from].own + (size_t)chunk * WORLD_CHUNK_BYTES,
							   .data_bytes = (uint32_t)world_chunk_bytes(p->w, chunk)};
}

static inline enum rv_err give(const struct pair *p, int from, const struct reduce_msg *m, struct rv_errtext *et) {
	return reduce_receive(p->r, p->w->now_us, from, m, et);
}

#endif
