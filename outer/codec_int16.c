/* codec_int16.c: symmetric int16, one scale per block of 256 values. The format and its properties are in codec.h. */
#include "outer/codec.h"
#include "outer/codec_block.h"
#include "outer/codec_kernels.h"
#include "outer/elementwise.h"

enum { BLOCK = 256, CODE_MAX = 32767 };

static const struct block_scales scales = {.codec = "int16", .code_max = CODE_MAX, .most = 0x1.0001p+113f};

/* Codes lie in an encoding wherever a frame puts it. */
typedef int16_t code_t __attribute__((aligned(1), may_alias));
typedef int16_t code_vec __attribute__((vector_size(VEC_LANES * 2), aligned(1), may_alias));
typedef int32_t int_vec __attribute__((vector_size(VEC_LANES * 4)));

#define CODES_AT(p) (*(code_vec *)(p))

static size_t blocks_of(size_t n) {
	return (n + BLOCK - 1) / BLOCK;
}

static size_t block_len(size_t n, size_t b) {
	size_t left = n - b * BLOCK;
	return left < BLOCK ? left : BLOCK;
}

static size_t int16_encoded_bytes(size_t n) {
	return blocks_of(n) * sizeof(float) + n * sizeof(code_t);
}

/* Returns where the codes of block b lie in an encoding of n values. */
static size_t codes_at(size_t n, size_t b) {
	return blocks_of(n) * sizeof(float) + b * BLOCK * sizeof(code_t);
}

/* ---- values and codes, once per instruction set ---- */

/* q[i] = the nearest integer, ties to even, of x[i] * inverse, which is within [-32767, 32767]: adding 1.5 * 2^23 to it
 * leaves it rounded in the low bits of the sum. */
RV_ELEMENTWISE_BODY quantize_body(const float *x, float inverse, code_t *q, size_t n) {
	const float magic = 12582912.0f;
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES) {
		const vec shifted = VEC_AT(x + i) * inverse + magic;
		CODES_AT(q + i) = __builtin_convertvector((int_vec)shifted - (int32_t)float_bits(magic), code_vec);
	}
	for (; i < n; i++)
		q[i] = (int16_t)(int32_t)(float_bits(x[i] * inverse + magic) - float_bits(magic));
}

RV_ELEMENTWISE(quantize, (const float *x, float inverse, code_t *q, size_t n), (x, inverse, q, n))

/* *most = the largest |q[i]|, 32768 included. */
RV_ELEMENTWISE_BODY absmax_body(const code_t *q, size_t n, unsigned *most) {
	int_vec largest = {0};
	int rest = 0;
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES) {
		const int_vec code = __builtin_convertvector(CODES_AT(q + i), int_vec);
		const int_vec minus = code<0, magnitude = (code ^ minus) - minus, more = magnitude> largest;
		largest = (magnitude & more) | (largest & ~more);
	}
	for (int l = 0; l < VEC_LANES; l++)
		rest = largest[l] > rest ? largest[l] : rest;
	for (; i < n; i++) {
		const int magnitude = q[i] < 0 ? -q[i] : q[i];
		rest = magnitude > rest ? magnitude : rest;
	}
	*most = (unsigned)rest;
}

RV_ELEMENTWISE(absmax, (const code_t *q, size_t n, unsigned *most), (q, n, most))

/* x[i] = q[i] * scale */
RV_ELEMENTWISE_BODY dequantize_body(const code_t *q, float scale, float *x, size_t n) {
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		VEC_AT(x + i) = __builtin_convertvector(CODES_AT(q + i), vec) * scale;
	for (; i < n; i++)
		x[i] = (float)q[i] * scale;
}

RV_ELEMENTWISE(dequantize, (const code_t *q, float scale, float *x, size_t n), (q, scale, x, n))

/* acc[i] = acc[i] + weight * (q[i] * scale) */
RV_ELEMENTWISE_BODY dequantize_add_body(const code_t *q, float scale, float weight, float *acc, size_t n) {
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		VEC_AT(acc + i) = VEC_AT(acc + i) + weight * (__builtin_convertvector(CODES_AT(q + i), vec) * scale);
	for (; i < n; i++)
		acc[i] = acc[i] + weight * ((float)q[i] * scale);
}

RV_ELEMENTWISE(dequantize_add, (const code_t *q, float scale, float weight, float *acc, size_t n),
			   (q, scale, weight, acc, n))

/* ---- blocks ---- */

/* Writes the scale of block b of n values and returns it; *q: the place of the block's codes. */
static float begin_block(uint32_t absmax_bits, size_t n, size_t b, uint8_t *out, code_t **q) {
	const float scale = block_scale(&scales, float_of_bits(absmax_bits));
	memcpy(out + b * sizeof scale, &scale, sizeof scale);
	*q = (code_t *)(void *)(out + codes_at(n, b));
	return scale;
}

/* Encodes block b of n values, x (its length) with the given maximum magnitude. */
static void encode_block(const float *x, uint32_t absmax_bits, size_t n, size_t b, uint8_t *out) {
	code_t *q;
	const float scale = begin_block(absmax_bits, n, b, out, &q);
	if (scale > 0)
		quantize(x, 1.0f / scale, q, block_len(n, b));
	else
		memset(q, 0, block_len(n, b) * sizeof *q);
}

static enum rv_err int16_encode(const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t b = 0; b < blocks_of(n); b++) {
		const float *xb = x + b * BLOCK;
		const uint32_t most = k->absmax_bits(xb, block_len(n, b));
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&scales, xb, block_len(n, b), b * BLOCK, et);
		encode_block(xb, most, n, b, out);
	}
	return RV_OK;
}

static enum rv_err int16_encode_delta(const float *x, const float *y, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		const size_t at = b * BLOCK, len = block_len(n, b);
		const uint32_t most = k->delta_absmax_bits(x + at, y + at, delta, len);
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&scales, delta, len, at, et);
		encode_block(delta, most, n, b, out);
	}
	return RV_OK;
}

/* Returns the code below or above magnitude / scale, the latter with the probability that makes the mean exact; where
 * the codec has the value itself, that one. The block's largest keeps the largest code: a block is refused without. */
static int random_code(float magnitude, float absmax, float scale, float uniform) {
	const double r = (double)magnitude / (double)scale;
	const int below = (int)r, nearest = (int)(r + 0.5);
	if (magnitude == absmax || nearest >= CODE_MAX)
		return CODE_MAX;
	if ((float)nearest * scale == magnitude)
		return nearest;
	return below + ((double)uniform < r - below);
}

static enum rv_err int16_encode_random(const float *x, size_t n, const struct codec_noise *noise, uint8_t *out,
									   struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float uniform[BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		const float *xb = x + b * BLOCK;
		const size_t len = block_len(n, b);
		const uint32_t most = k->absmax_bits(xb, len);
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&scales, xb, len, b * BLOCK, et);
		code_t *q;
		const float scale = begin_block(most, n, b, out, &q), absmax = float_of_bits(most);
		codec_noise_fill(noise, b * BLOCK, uniform, len);
		for (size_t i = 0; i < len; i++) {
			const float magnitude = float_of_bits(float_magnitude(xb[i]));
			const int code = scale > 0 ? random_code(magnitude, absmax, scale, uniform[i]) : 0;
			q[i] = (int16_t)(xb[i] < 0 ? -code : code);
		}
	}
	return RV_OK;
}

/* A block as it lies in an encoding. */
struct block_view {
	const code_t *q;
	size_t len;
	float scale;
};

/* Finds block b and refuses what encode_block cannot have written. */
static enum rv_err open_block(const uint8_t *in, size_t n, size_t b, struct block_view *v, struct rv_errtext *et) {
	unsigned most;
	v->q = (const code_t *)(const void *)(in + codes_at(n, b));
	v->len = block_len(n, b);
	memcpy(&v->scale, in + b * sizeof v->scale, sizeof v->scale);
	absmax(v->q, v->len, &most);
	return block_check(&scales, b, v->scale, most, CODE_MAX, et);
}

static enum rv_err int16_decode(const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	for (size_t b = 0; b < blocks_of(n); b++) {
		struct block_view v;
		RV_TRY(open_block(in, n, b, &v, et));
		dequantize(v.q, v.scale, x + b * BLOCK, v.len);
	}
	return RV_OK;
}

static enum rv_err int16_decode_add(const uint8_t *in, size_t n, float weight, float *acc, struct rv_errtext *et) {
	for (size_t b = 0; b < blocks_of(n); b++) {
		struct block_view v;
		RV_TRY(open_block(in, n, b, &v, et));
		dequantize_add(v.q, v.scale, weight, acc + b * BLOCK, v.len);
	}
	return RV_OK;
}

const struct codec codec_int16 = {
	.name = "int16",
	.id = 11,
	.block = BLOCK,
	.canonical = true,
	.encoded_bytes = int16_encoded_bytes,
	.encode = int16_encode,
	.encode_random = int16_encode_random,
	.encode_delta = int16_encode_delta,
	.decode = int16_decode,
	.decode_add = int16_decode_add,
};
