/* fragments.h: which part of the vector a round exchanges.
 *
 * DiLoCo exchanges the whole vector: one fragment. Streaming DiLoCo (arXiv 2501.18512, section 3)
 * cuts it into P fragments and exchanges one a round: fragment r mod P in round r. So each
 * parameter is exchanged once in P rounds, and about a P-th of the bytes at a time.
 *
 * A fragment is a set of chunks. With P >= 2, layer l belongs to fragment l mod (P - 1), the
 * paper's strided pattern, and all other parameters (embeddings, the last norm, the classifier) to
 * fragment P - 1. A chunk belongs to the fragment of its first value. A fragment is exchanged like
 * a vector of its own: its chunks in ascending order, cut by fragment_chunks(). Only the chunk that
 * ends the whole vector may be short, and it is the last one of its fragment, so the fragment is an
 * ordinary chunking.
 *
 * Pure arithmetic over a small table; plain data, copied freely. */
#ifndef RV_OUTER_FRAGMENTS_H
#define RV_OUTER_FRAGMENTS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct codec;

/* The cut of a vector of n values. Every machine computes the same. */
struct chunking {
	size_t n, chunk_elems;
	uint32_t n_chunks;
};

/* Returns a chunk size in values: a multiple of 256, at most 65,536, that gives 64 to 256 chunks
 * for n from 2^14 to 2^24. Runs agree on it (chunk-elems = 0), as on formats: it can never
 * change. */
size_t chunking_default_elems(size_t n);
/* Returns what a new run of several fragments writes as its chunk-elems: chunks as small as those
 * of a vector of one fragment's size, so that as many members may own some; at least 4,096 values,
 * as each chunk costs a frame, and at most chunking_default_elems(n). */
size_t chunking_fragment_elems(size_t n, size_t n_fragments);
/* Cuts n values into chunks; asserts chunk_elems % 256 == 0. */
struct chunking chunking_of(size_t n, size_t chunk_elems);
size_t chunking_len(const struct chunking *c, uint32_t chunk); /* values of that chunk */
size_t chunking_offset_bytes(const struct chunking *c, const struct codec *k,
							 uint32_t chunk); /* its offset in an encoded vector */
size_t chunking_total_bytes(const struct chunking *c, const struct codec *k);

/* Place of the layers in the vector: n of them, one after the other, of equal size. n 0: unknown,
 * or none. */
struct fragment_layers {
	size_t begin, layer_elems;
	int n;
};

enum { FRAGMENTS_MAX = 64, FRAGMENTS_MAX_LAYERS = 256, FRAGMENTS_MAX_RANGES = FRAGMENTS_MAX_LAYERS + 2 };

/* The fragments of a vector. All zero: one fragment, the whole vector. */
struct fragments {
	uint32_t n; /* P; the table is filled for n >= 2 */
	uint32_t n_ranges;
	struct {
		uint32_t first, count; /* chunks of the whole vector */
		uint32_t fragment;
	} ranges[FRAGMENTS_MAX_RANGES]; /* ascending, covering [0, n_chunks) */
};
uint32_t fragments_count(const struct fragments *f); /* P, at least 1 */

/* Cuts `whole` into n fragments. RV_E_RANGE: a fragment would be empty: more fragments than layers
 * + 1, or chunks larger than layers; the text names the fragment and the remedy. */
enum rv_err fragments_make(const struct chunking *whole, uint32_t n, const struct fragment_layers *layers,
						   struct fragments *out, struct rv_errtext *et);
uint32_t fragment_of_round(const struct fragments *f, uint64_t round);
/* Returns the fragment as a vector of its own. */
struct chunking fragment_chunks(const struct fragments *f, const struct chunking *whole, uint32_t fragment);
/* Returns the chunk of the whole vector that is chunk i of the fragment. */
uint32_t fragment_chunk(const struct fragments *f, uint32_t fragment, uint32_t i);

#endif
