/* chunking.c: how a vector is cut into chunks: arithmetic only. */
#include "base/assert.h"
#include "outer/codec.h"
#include "outer/fragments.h"

enum { CHUNK_GRAIN = 256, CHUNK_MAX = 65536, CHUNKS_WANTED = 128, FRAGMENT_CHUNK_LEAST = 4096 };

size_t chunking_default_elems(size_t n) {
	size_t elems = n / CHUNKS_WANTED / CHUNK_GRAIN * CHUNK_GRAIN + CHUNK_GRAIN;
	return elems < CHUNK_MAX ? elems : CHUNK_MAX;
}

size_t chunking_fragment_elems(size_t n, size_t n_fragments) {
	RV_ASSERT(n_fragments > 0);
	size_t whole = chunking_default_elems(n), elems = chunking_default_elems(n / n_fragments);
	elems = elems > FRAGMENT_CHUNK_LEAST ? elems : FRAGMENT_CHUNK_LEAST;
	return elems < whole ? elems : whole;
}

struct chunking chunking_of(size_t n, size_t chunk_elems) {
	RV_ASSERT(chunk_elems > 0 && chunk_elems % CHUNK_GRAIN == 0);
	size_t n_chunks = n / chunk_elems + (n % chunk_elems != 0);
	RV_ASSERT(n_chunks <= UINT32_MAX);
	RV_ASSERT(n_chunks == 0 || ((n_chunks - 1) * chunk_elems < n && n <= n_chunks * chunk_elems));
	return (struct chunking){.n = n, .chunk_elems = chunk_elems, .n_chunks = (uint32_t)n_chunks};
}

size_t chunking_len(const struct chunking *c, uint32_t chunk) {
	RV_ASSERT(chunk < c->n_chunks);
	RV_ASSERT(chunk * c->chunk_elems < c->n);
	size_t left = c->n - chunk * c->chunk_elems;
	return left < c->chunk_elems ? left : c->chunk_elems;
}

/* Every chunk before the last is whole, so offsets are multiples. */
size_t chunking_offset_bytes(const struct chunking *c, const struct codec *k, uint32_t chunk) {
	RV_ASSERT(chunk < c->n_chunks);
	return chunk * k->encoded_bytes(k, c->chunk_elems);
}

size_t chunking_total_bytes(const struct chunking *c, const struct codec *k) {
	if (c->n_chunks == 0)
		return 0;
	uint32_t last = c->n_chunks - 1;
	return chunking_offset_bytes(c, k, last) + k->encoded_bytes(k, chunking_len(c, last));
}
