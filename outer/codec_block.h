/* codec_block.h: codecs with one scale per block of values (int16, int8, int4): the scales, and the
 * loops over blocks. Private to outer/. A codec's `format` is a struct block_format: the loops over
 * the values of a block.
 *
 * An encoding is the scales of all blocks, then the codes. A scale is 0 for blocks too small to
 * scale without denormals; else it has 17 significant bits and lies in [2^-126, scale_max]. So the
 * scale times a code of up to 7 bits is exact (times one of 15 bits it is rounded once), a decoded
 * block has the same scale again, and rounding the scale removes the rounding error of a sum of
 * equal blocks. */
#ifndef RV_OUTER_CODEC_BLOCK_H
#define RV_OUTER_CODEC_BLOCK_H

#include "outer/codec.h"
#include "outer/float_bits.h"

/* Constants of a block codec, and its loops over the n values of a block, n <= self->block. Codes
 * need no alignment. */
struct block_format {
	unsigned code_max; /* largest code, which stands for the block's absmax */
	unsigned code_bits;
	float scale_max; /* largest 17-bit scale with code_max * scale <= FLT_MAX */
	/* Writes the codes nearest to x[i] * inverse, which is within [-code_max, code_max]. */
	void (*quantize)(const float *x, float inverse, size_t n, uint8_t *codes);
	/* Sets *most to the largest magnitude of a code. RV_E_CORRUPT, with block number b in the text:
	 * codes that quantize does not write, whatever the scale. */
	enum rv_err (*largest)(const uint8_t *codes, size_t n, size_t b, unsigned *most, struct rv_errtext *et);
	/* Sets x[i] = code i * scale. */
	void (*dequantize)(const uint8_t *codes, float scale, size_t n, float *x);
	/* Sets acc[i] = acc[i] + weight * (code i * scale). */
	void (*dequantize_add)(const uint8_t *codes, float scale, float weight, size_t n, float *acc);
};

/* Block b of an encoding of n values. */
struct block_view {
	const uint8_t *codes;
	size_t first, len; /* range of its values */
	float scale;
};
struct block_view block_view(const struct codec *self, const uint8_t *in, size_t n, size_t b);
size_t block_count(const struct codec *self, size_t n);

/* Implement the functions of struct codec. */
size_t block_encoded_bytes(const struct codec *self, size_t n);
enum rv_err block_encode(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err block_encode_delta(const struct codec *self, const float *x, const float *y, size_t n, uint8_t *out,
							   struct rv_errtext *et);
enum rv_err block_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err block_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							 struct rv_errtext *et);

/* Their initializers, with the codec's format. */
#define BLOCK_CODEC_OPS(its_format)                                                                                    \
	.format = (its_format), .encoded_bytes = block_encoded_bytes, .encode = block_encode,                              \
	.encode_delta = block_encode_delta, .decode = block_decode, .decode_add = block_decode_add

/* Returns the scale for `absmax`, which is finite: absmax / code_max, its significand rounded to 17
 * bits (nearest, ties away from zero), at most scale_max; 0 if absmax < code_max * 2^-126. */
float block_scale(float absmax, float code_max, float scale_max);
/* Returns RV_E_RANGE; the text names the first value that is not finite of x (n values, from
 * `offset` of the chunk on). */
enum rv_err block_not_finite(const struct codec *self, const float *x, size_t n, size_t offset, struct rv_errtext *et);

#endif
