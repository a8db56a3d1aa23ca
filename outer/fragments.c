/* fragments.c: layers to chunks to fragments. */
#include "outer/fragments.h"

#include "base/assert.h"

/* Returns the layer of this element; layers->n: it is in none. */
static int layer_of(const struct fragment_layers *layers, size_t elem) {
	if (layers->n == 0 || elem < layers->begin)
		return layers->n;
	size_t layer = (elem - layers->begin) / layers->layer_elems;
	return layer < (size_t)layers->n ? (int)layer : layers->n;
}

static uint32_t fragment_at(const struct fragment_layers *layers, uint32_t n, size_t elem) {
	int layer = layer_of(layers, elem);
	return layer < layers->n ? (uint32_t)layer % (n - 1) : n - 1;
}

static enum rv_err check_none_empty(const struct fragments *f, struct rv_errtext *et) {
	for (uint32_t fragment = 0; fragment < f->n; fragment++) {
		uint32_t i = 0;
		while (i < f->n_ranges && f->ranges[i].fragment != fragment)
			i++;
		if (i == f->n_ranges)
			return rv_fail(
				et, RV_E_RANGE,
				"fragments = %u: fragment %u would hold no chunk; at most one fragment a layer and one for the "
				"rest, and a smaller chunk-elems where a chunk is larger than a layer",
				f->n, fragment);
	}
	return RV_OK;
}

/* Asserts that the ranges cover the chunks in ascending order, each once, and that neighbours are
 * of different fragments. */
static void check_cover(const struct fragments *f, uint32_t n_chunks) {
	uint32_t next = 0;
	for (uint32_t i = 0; i < f->n_ranges; i++) {
		RV_ASSERT(f->ranges[i].first == next && f->ranges[i].count > 0);
		RV_ASSERT(f->ranges[i].fragment < f->n);
		RV_ASSERT(i == 0 || f->ranges[i].fragment != f->ranges[i - 1].fragment);
		next += f->ranges[i].count;
	}
	RV_ASSERT(next == n_chunks);
}

enum rv_err fragments_make(const struct chunking *whole, uint32_t n, const struct fragment_layers *layers,
						   struct fragments *out, struct rv_errtext *et) {
	RV_ASSERT(n >= 1 && n <= FRAGMENTS_MAX && layers->n <= FRAGMENTS_MAX_LAYERS);
	*out = (struct fragments){.n = n};
	if (n == 1)
		return RV_OK;
	for (uint32_t chunk = 0; chunk < whole->n_chunks; chunk++) {
		uint32_t fragment = fragment_at(layers, n, chunk * whole->chunk_elems);
		if (out->n_ranges > 0 && out->ranges[out->n_ranges - 1].fragment == fragment) {
			out->ranges[out->n_ranges - 1].count++;
			continue;
		}
		RV_ASSERT(out->n_ranges < FRAGMENTS_MAX_RANGES);
		out->ranges[out->n_ranges].first = chunk;
		out->ranges[out->n_ranges].count = 1;
		out->ranges[out->n_ranges++].fragment = fragment;
	}
	check_cover(out, whole->n_chunks);
	return check_none_empty(out, et);
}

uint32_t fragments_count(const struct fragments *f) {
	return f->n > 1 ? f->n : 1;
}

uint32_t fragment_of_round(const struct fragments *f, uint64_t round) {
	return (uint32_t)(round % fragments_count(f));
}

struct chunking fragment_chunks(const struct fragments *f, const struct chunking *whole, uint32_t fragment) {
	RV_ASSERT(fragment < fragments_count(f));
	struct chunking c = {.chunk_elems = whole->chunk_elems};
	if (f->n <= 1)
		return *whole;
	for (uint32_t i = 0; i < f->n_ranges; i++) {
		if (f->ranges[i].fragment != fragment)
			continue;
		uint32_t last = f->ranges[i].first + f->ranges[i].count - 1;
		c.n_chunks += f->ranges[i].count;
		c.n += (size_t)(f->ranges[i].count - 1) * whole->chunk_elems + chunking_len(whole, last);
	}
	RV_ASSERT(c.n_chunks > 0 && c.n_chunks < whole->n_chunks);
	/* Every chunk but the last is whole, so that the fragment is an ordinary chunking. */
	RV_ASSERT((c.n_chunks - 1) * c.chunk_elems < c.n && c.n <= c.n_chunks * c.chunk_elems);
	return c;
}

uint32_t fragment_chunk(const struct fragments *f, uint32_t fragment, uint32_t i) {
	if (f->n <= 1)
		return i;
	for (uint32_t k = 0; k < f->n_ranges; k++) {
		if (f->ranges[k].fragment != fragment)
			continue;
		if (i < f->ranges[k].count)
			return f->ranges[k].first + i;
		i -= f->ranges[k].count;
	}
	RV_UNREACHABLE("chunk of a fragment");
}
