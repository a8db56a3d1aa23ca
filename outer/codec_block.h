/* codec_block.h: codecs with one scale per block of values (int16, int8, int4): the scales, and the loops over blocks.
 * Private to outer/. A codec gives a struct block_format as its `format`: the loops over the values of a block.
 *
 * An encoding is the scales of all blocks, then the codes. A scale is zero, for blocks too small to scale without
 * denormals, or of 17 significant bits in [2^-126, most]: then the scale times a code of up to 7 bits is exact (times
 * one of 15 bits it is rounded once), the scale of a decoded block is the scale again, and the rounding in a sum of
 * equal blocks disappears in it. */
#ifndef RV_OUTER_CODEC_BLOCK_H
#define RV_OUTER_CODEC_BLOCK_H

#include "outer/codec.h"
#include "outer/float_bits.h"

/* Loops over the n values of a block, n <= self->block; codes may lie anywhere. */
struct block_format {
	unsigned code_max; /* the largest code, which stands for the block's absmax */
	unsigned code_bits;
	float scale_max; /* the largest 17-bit scale with code_max * scale <= FLT_MAX */
	/* codes = the nearest to x[i] * inverse, which is within [-code_max, code_max] */
	void (*quantize)(const float *x, float inverse, size_t n, uint8_t *codes);
	/* *most = the largest magnitude of a code. RV_E_CORRUPT, with block number b in the text: codes that quantize does
	 * not write, whatever the scale. */
	enum rv_err (*largest)(const uint8_t *codes, size_t n, size_t b, unsigned *most, struct rv_errtext *et);
	/* x[i] = code i * scale */
	void (*dequantize)(const uint8_t *codes, float scale, size_t n, float *x);
	/* acc[i] = acc[i] + weight * (code i * scale) */
	void (*dequantize_add)(const uint8_t *codes, float scale, float weight, size_t n, float *acc);
};

/* Block b of an encoding of n values. */
struct block_view {
	const uint8_t *codes;
	size_t first, len; /* its values */
	float scale;
};
struct block_view block_view(const struct codec *self, const uint8_t *in, size_t n, size_t b);
size_t block_count(const struct codec *self, size_t n);

/* The functions of struct codec. */
size_t block_encoded_bytes(const struct codec *self, size_t n);
enum rv_err block_encode(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err block_encode_delta(const struct codec *self, const float *x, const float *y, size_t n, uint8_t *out,
							   struct rv_errtext *et);
enum rv_err block_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err block_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							 struct rv_errtext *et);

/* Returns the scale for that absmax, finite: absmax / code_max, its significand rounded to 17 bits (nearest, ties away
 * from zero), scale_max at most; 0 when absmax < code_max * 2^-126. */
float block_scale(float absmax, float code_max, float scale_max);
/* Returns true for what block_scale could have returned, other than 0; false for NaN. */
bool block_scale_valid(float scale, float scale_max);
/* RV_E_RANGE: says which of x (n values, which begin at `offset` of the chunk) is the first that is not finite. */
enum rv_err block_not_finite(const struct codec *self, const float *x, size_t n, size_t offset, struct rv_errtext *et);

#endif
