/* moments.h: Adam's two moments in memory: floats, or 8-bit codes in blocks (moments_code.h; block-
 * wise 8-bit optimizers: Dettmers et al., arXiv 2110.02861).
 *
 * A vector of n moments in 8 bits is a code for each, up to whole blocks (those beyond n are 0),
 * then for each block its top as a float: 1 + 4/256 bytes per moment. All bytes 0 mean zeros. */
#ifndef RV_KERNELS_MOMENTS_H
#define RV_KERNELS_MOMENTS_H

#include "kernels/moments_code.h"

#include <stddef.h>

enum moments { MOMENTS_FP32, MOMENTS_INT8 };
/* The values of option `moments`, in the order of the enum. */
#define MOMENTS_NAMES "fp32|int8"
/* Returns one of them. */
static inline const char *moments_name(enum moments m) {
	return m == MOMENTS_FP32 ? "fp32" : "int8";
}

/* Return the blocks of n moments, the bytes of their codes, and those of the whole vector. */
static inline size_t moments_blocks(size_t n) {
	return (n + MOMENTS_BLOCK - 1) / MOMENTS_BLOCK;
}

static inline size_t moments_code_bytes(size_t n) {
	return moments_blocks(n) * MOMENTS_BLOCK;
}

static inline size_t moments_bytes(enum moments kind, size_t n) {
	return kind == MOMENTS_FP32 ? n * sizeof(float) : moments_code_bytes(n) + moments_blocks(n) * sizeof(float);
}

/* Returns the tops of a vector of n moments in 8 bits. */
static inline float *moments_tops(void *codes, size_t n) {
	return (float *)(void *)((char *)codes + moments_code_bytes(n));
}

/* Which of the two moments. */
enum moment { MOMENT_FIRST, MOMENT_SECOND };

/* Decodes block `block` of a vector of n moments in host memory. Returns how many there are. */
size_t moments_decode_block(enum moment which, const void *vector, size_t n, size_t block, float out[MOMENTS_BLOCK]);
/* Encodes a block of it, with the draws of `seed` (moments_seed). Values are finite; second moments
 * are not negative. */
void moments_encode_block(enum moment which, void *vector, size_t n, size_t block, const float in[MOMENTS_BLOCK],
						  uint32_t seed);

#endif
