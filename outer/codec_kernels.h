/* codec_kernels.h: the inner loops of the codecs, once per instruction set. Private to outer/;
 * tests compare the sets.
 *
 * Every set gives the same bits: the operations are a maximum of integers, single correctly rounded
 * multiplications, additions and subtractions, and one rounding to nearest even. None may be fused
 * or reordered across elements. Any length is valid, also 0; no alignment is assumed. */
#ifndef RV_OUTER_CODEC_KERNELS_H
#define RV_OUTER_CODEC_KERNELS_H

#include <stddef.h>
#include <stdint.h>

struct codec_kernels {
	const char *isa; /* "avx512", "avx2", "portable" */
	/* Returns the magnitude bits of max |x[i]|; at least FLOAT_INF_BITS if a value is not
	 * finite. */
	uint32_t (*absmax_bits)(const float *x, size_t n);
	/* Sets d = a - b, and returns the same maximum of d. */
	uint32_t (*delta_absmax_bits)(const float *a, const float *b, float *d, size_t n);
	/* Sets q[i] to the nearest integer, ties to even, of x[i] * inverse, which is within [-127,
	 * 127]. */
	void (*quantize)(const float *x, float inverse, int8_t *q, size_t n);
	/* Returns the largest |q[i]|, 128 included. */
	unsigned (*absmax_int8)(const int8_t *q, size_t n);
	/* Sets x[i] = q[i] * scale. */
	void (*dequantize)(const int8_t *q, float scale, float *x, size_t n);
	/* Sets acc[i] = acc[i] + weight * (q[i] * scale). */
	void (*dequantize_add)(const int8_t *q, float scale, float weight, float *acc, size_t n);
	/* Sets acc[i] = acc[i] + weight * x[i]. */
	void (*scaled_add)(const float *x, float weight, float *acc, size_t n);
	/* Returns the sum of q[i]^2; n <= 2^17. */
	uint32_t (*squares_int8)(const int8_t *q, size_t n);
	/* Returns the sum of q[i] * y[i], each product and sum rounded to fp32: lane i mod 16 adds it,
	 * in order; then the lanes are added in double, as in dot. */
	double (*dot_int8)(const int8_t *q, const float *y, size_t n);
	/* Returns the sum of x[i] * y[i] in double, where each product is exact: lane i mod 16 adds it,
	 * in order; then lane l adds lane l + 8, l + 4, l + 2, l + 1. */
	double (*dot)(const float *x, const float *y, size_t n);
};

enum { CODEC_DOT_LANES = 16 };

extern const struct codec_kernels codec_kernels_avx512, codec_kernels_avx2, codec_kernels_portable;

/* Returns the best set that this processor runs. */
const struct codec_kernels *codec_kernels_best(void);
/* Returns the i-th set that this processor runs, best first; NULL past the last. */
const struct codec_kernels *codec_kernels_at(int i);

#endif
