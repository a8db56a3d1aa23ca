/* codec_int8.c: symmetric int8, one scale per block of 256 values. The format and its properties are in codec.h; here
 * is its scalar part, block by block; the loops over values are in codec_kernels*.c. */
#include "outer/codec.h"
#include "outer/codec_block.h"
#include "outer/codec_kernels.h"

enum { BLOCK = 256, CODE_MAX = 127 };

static const struct block_scales scales = {.codec = "int8", .code_max = CODE_MAX, .most = 0x1.0204p+121f};

static size_t blocks_of(size_t n) {
	return (n + BLOCK - 1) / BLOCK;
}

static size_t block_len(size_t n, size_t block) {
	size_t left = n - block * BLOCK;
	return left < BLOCK ? left : BLOCK;
}

static size_t int8_encoded_bytes(size_t n) {
	return blocks_of(n) * sizeof(float) + n;
}

/* A block's scale goes to its place; returns it, and the place of its values. */
static float begin_block(uint32_t absmax_bits, size_t n, size_t b, uint8_t *out, int8_t **q) {
	float scale = block_scale(&scales, float_of_bits(absmax_bits));
	memcpy(out + b * sizeof scale, &scale, sizeof scale);
	*q = (int8_t *)out + blocks_of(n) * sizeof scale + b * BLOCK;
	return scale;
}

/* Encodes block b of n values, x (its length) with the given maximum magnitude. */
static void encode_block(const struct codec_kernels *k, const float *x, uint32_t absmax_bits, size_t n, size_t b,
						 uint8_t *out) {
	int8_t *q;
	float scale = begin_block(absmax_bits, n, b, out, &q);
	if (scale > 0)
		k->quantize(x, 1.0f / scale, q, block_len(n, b));
	else
		memset(q, 0, block_len(n, b));
}

static enum rv_err int8_encode(const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t b = 0; b < blocks_of(n); b++) {
		const float *xb = x + b * BLOCK;
		uint32_t most = k->absmax_bits(xb, block_len(n, b));
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&scales, xb, block_len(n, b), b * BLOCK, et);
		encode_block(k, xb, most, n, b, out);
	}
	return RV_OK;
}

/* q[i] = the integer below or above |x[i]| / scale, the latter with the probability that makes the mean exact, and x's
 * sign. What is as large as the block's largest keeps the largest code: a block is refused without one. */
static void quantize_random(const float *x, float absmax, float scale, const float *uniform, int8_t *q, size_t n) {
	for (size_t i = 0; i < n; i++) {
		const float magnitude = float_of_bits(float_magnitude(x[i]));
		const float r = (float)((double)magnitude / (double)scale); /* an integer where the value is a multiple */
		int code = (int)r;
		code += uniform[i] < r - (float)code;
		code = magnitude == absmax || code > CODE_MAX ? CODE_MAX : code;
		q[i] = (int8_t)(x[i] < 0 ? -code : code);
	}
}

static enum rv_err int8_encode_random(const float *x, size_t n, const struct codec_noise *noise, uint8_t *out,
									  struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float uniform[BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		const float *xb = x + b * BLOCK;
		const size_t len = block_len(n, b);
		uint32_t most = k->absmax_bits(xb, len);
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&scales, xb, len, b * BLOCK, et);
		int8_t *q;
		float scale = begin_block(most, n, b, out, &q);
		codec_noise_fill(noise, b * BLOCK, uniform, len);
		if (scale > 0)
			quantize_random(xb, float_of_bits(most), scale, uniform, q, len);
		else
			memset(q, 0, len);
	}
	return RV_OK;
}

static enum rv_err int8_encode_delta(const float *x, const float *y, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		uint32_t most = k->delta_absmax_bits(x + b * BLOCK, y + b * BLOCK, delta, block_len(n, b));
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&scales, delta, block_len(n, b), b * BLOCK, et);
		encode_block(k, delta, most, n, b, out);
	}
	return RV_OK;
}

/* A block as it lies in an encoding. */
struct block_view {
	const int8_t *q;
	size_t len;
	float scale;
};

/* Finds block b and refuses what encode_block cannot have written. */
static enum rv_err open_block(const struct codec_kernels *k, const uint8_t *in, size_t n, size_t b,
							  struct block_view *v, struct rv_errtext *et) {
	v->q = (const int8_t *)in + blocks_of(n) * sizeof v->scale + b * BLOCK;
	v->len = block_len(n, b);
	memcpy(&v->scale, in + b * sizeof v->scale, sizeof v->scale);
	unsigned most = k->absmax_int8(v->q, v->len);
	return block_check(&scales, b, v->scale, most, CODE_MAX, et);
}

static enum rv_err int8_decode(const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t b = 0; b < blocks_of(n); b++) {
		struct block_view v;
		RV_TRY(open_block(k, in, n, b, &v, et));
		k->dequantize(v.q, v.scale, x + b * BLOCK, v.len);
	}
	return RV_OK;
}

static enum rv_err int8_decode_add(const uint8_t *in, size_t n, float weight, float *acc, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t b = 0; b < blocks_of(n); b++) {
		struct block_view v;
		RV_TRY(open_block(k, in, n, b, &v, et));
		k->dequantize_add(v.q, v.scale, weight, acc + b * BLOCK, v.len);
	}
	return RV_OK;
}

/* Of each block the sum of the integers' squares, exact, times the scale's, exact: one rounding, and one in the sum. */
static double int8_sum_squares(const uint8_t *in, size_t n) {
	const struct codec_kernels *k = codec_kernels_best();
	double sum = 0;
	for (size_t b = 0; b < blocks_of(n); b++) {
		const int8_t *q = (const int8_t *)in + blocks_of(n) * sizeof(float) + b * BLOCK;
		float scale;
		memcpy(&scale, in + b * sizeof scale, sizeof scale);
		sum += (double)scale * (double)scale * (double)k->squares_int8(q, block_len(n, b));
	}
	return sum;
}

static double int8_dot(const uint8_t *in, size_t n, const float *y) {
	const struct codec_kernels *k = codec_kernels_best();
	double sum = 0;
	for (size_t b = 0; b < blocks_of(n); b++) {
		const int8_t *q = (const int8_t *)in + blocks_of(n) * sizeof(float) + b * BLOCK;
		float scale;
		memcpy(&scale, in + b * sizeof scale, sizeof scale);
		sum += (double)scale * k->dot_int8(q, y + b * BLOCK, block_len(n, b));
	}
	return sum;
}

const struct codec codec_int8 = {
	.name = "int8",
	.id = 1,
	.block = BLOCK,
	.canonical = true,
	.encoded_bytes = int8_encoded_bytes,
	.encode = int8_encode,
	.encode_random = int8_encode_random,
	.encode_delta = int8_encode_delta,
	.decode = int8_decode,
	.decode_add = int8_decode_add,
	.sum_squares = int8_sum_squares,
	.dot = int8_dot,
};
