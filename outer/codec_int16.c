/* codec_int16.c: symmetric int16, one scale per block of 256 values. The format and its properties
 * are in codec.h; the loops over blocks are in codec_block.c. */
#include "outer/codec_block.h"
#include "outer/elementwise.h"

/* Adding 1.5 * 2^23 leaves an fp32 of magnitude below 2^22 rounded to an integer (nearest even) in
 * the low bits. */
#define ROUNDING_MAGIC 12582912.0f

/* A code in an encoding, which a frame may place at any alignment. */
typedef int16_t code_t __attribute__((aligned(1), may_alias));

RV_ELEMENTWISE_BODY quantize_codes_body(const float *restrict x, float inverse, size_t n, code_t *restrict q) {
	for (size_t i = 0; i < n; i++)
		q[i] = (int16_t)(int32_t)(float_bits(x[i] * inverse + ROUNDING_MAGIC) - float_bits(ROUNDING_MAGIC));
}

RV_ELEMENTWISE(quantize_codes, (const float *x, float inverse, size_t n, code_t *q), (x, inverse, n, q))

/* Sets *most to the largest |q[i]|, 32768 included. */
RV_ELEMENTWISE_BODY absmax_body(const code_t *q, size_t n, unsigned *most) {
	int found = 0;
	for (size_t i = 0; i < n; i++) {
		const int magnitude = q[i] < 0 ? -q[i] : q[i];
		found = magnitude > found ? magnitude : found;
	}
	*most = (unsigned)found;
}

RV_ELEMENTWISE(absmax, (const code_t *q, size_t n, unsigned *most), (q, n, most))

RV_ELEMENTWISE_BODY dequantize_codes_body(const code_t *restrict q, float scale, size_t n, float *restrict x) {
	for (size_t i = 0; i < n; i++)
		x[i] = (float)q[i] * scale;
}

RV_ELEMENTWISE(dequantize_codes, (const code_t *q, float scale, size_t n, float *x), (q, scale, n, x))

RV_ELEMENTWISE_BODY add_codes_body(const code_t *restrict q, float scale, float weight, size_t n, float *restrict acc) {
	for (size_t i = 0; i < n; i++)
		acc[i] = acc[i] + weight * ((float)q[i] * scale);
}

RV_ELEMENTWISE(add_codes, (const code_t *q, float scale, float weight, size_t n, float *acc),
			   (q, scale, weight, n, acc))

static void quantize(const float *x, float inverse, size_t n, uint8_t *codes) {
	quantize_codes(x, inverse, n, (code_t *)codes);
}

static enum rv_err largest(const uint8_t *codes, size_t n, size_t b, unsigned *most, struct rv_errtext *et) {
	(void)b;
	(void)et;
	absmax((const code_t *)codes, n, most);
	return RV_OK;
}

static void dequantize(const uint8_t *codes, float scale, size_t n, float *x) {
	dequantize_codes((const code_t *)codes, scale, n, x);
}

static void dequantize_add(const uint8_t *codes, float scale, float weight, size_t n, float *acc) {
	add_codes((const code_t *)codes, scale, weight, n, acc);
}

static const struct block_format format = {
	.code_max = 32767,
	.code_bits = 16,
	.scale_max = 0x1.0001p+113f,
	.quantize = quantize,
	.largest = largest,
	.dequantize = dequantize,
	.dequantize_add = dequantize_add,
};

const struct codec codec_int16 = {
	.name = "int16",
	.id = 11,
	.block = 256,
	.loses = 0.0003,
	BLOCK_CODEC_OPS(&format),
};
