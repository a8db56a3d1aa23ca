/* codec_int4.c: four bits per value, sign and magnitude, evenly spaced: -7 to 7 times the scale of
 * the block of 128. The format is in codec.h; the loops over blocks are in codec_block.c. */
#include "outer/codec_block.h"
#include "outer/codec_kernels.h"
#include "outer/elementwise.h"

enum { BLOCK = 128, CODE_MAX = 7, CODE_SIGN = 8, LOW_HALF = 15 };

/* Sets code[i] (BLOCK) to the magnitude nearest to |x[i]| * inverse, and x's sign. */
RV_ELEMENTWISE_BODY nearest_codes_body(const float *restrict x, float inverse, uint8_t *restrict code) {
	/* Magnitude m + 1 begins at from[m]; a tie goes to the even one: just above 0.5, 2.5, 4.5 and
	 * 6.5. */
	static const float from[CODE_MAX] = {0x1.000002p-1f, 1.5f, 0x1.400002p1f, 3.5f, 0x1.200002p2f, 5.5f, 0x1.a00002p2f};
	for (size_t i = 0; i < BLOCK; i++) {
		const float r = float_of_bits(float_magnitude(x[i])) * inverse;
		int magnitude = 0;
		for (int m = 0; m < CODE_MAX; m++)
			magnitude += r >= from[m];
		code[i] = (uint8_t)(magnitude | (x[i] < 0 && magnitude > 0 ? CODE_SIGN : 0));
	}
}

RV_ELEMENTWISE(nearest_codes, (const float *x, float inverse, uint8_t *code), (x, inverse, code))

static void quantize(const float *x, float inverse, size_t n, uint8_t *codes) {
	float filled[BLOCK] = {0};
	uint8_t code[BLOCK];
	nearest_codes(n < BLOCK ? memcpy(filled, x, n * sizeof *x) : x, inverse, code);
	for (size_t i = 0; i < n; i += 2)
		codes[i / 2] = (uint8_t)(code[i] | code[i + 1] << 4);
}

/* Unpacks the codes into code (n, rounded up to an even number), a byte each. */
static void unpack(const uint8_t *codes, size_t n, uint8_t *code) {
	for (size_t i = 0; i < (n + 1) / 2; i++) {
		code[2 * i] = codes[i] & LOW_HALF;
		code[2 * i + 1] = codes[i] >> 4;
	}
}

static enum rv_err largest(const uint8_t *codes, size_t n, size_t b, unsigned *most, struct rv_errtext *et) {
	uint8_t code[BLOCK], found = 0;
	bool negative_zero = false;
	unpack(codes, n, code);
	for (size_t i = 0; i < n; i++) {
		const uint8_t magnitude = code[i] & CODE_MAX;
		found = magnitude > found ? magnitude : found;
		negative_zero |= code[i] == CODE_SIGN;
	}
	if (n % 2 != 0 && code[n] != 0)
		return rv_fail(et, RV_E_CORRUPT, "int4 block %zu: %u in the unused bits of the last byte", b, code[n]);
	for (size_t i = 0; negative_zero && i < n; i++)
		if (code[i] == CODE_SIGN)
			return rv_fail(et, RV_E_CORRUPT, "int4 block %zu: value %zu is a negative zero", b, i);
	*most = found;
	return RV_OK;
}

static void dequantize(const uint8_t *codes, float scale, size_t n, float *x) {
	uint8_t code[BLOCK];
	float value[2 * CODE_SIGN];
	unpack(codes, n, code);
	for (int m = 0; m <= CODE_MAX; m++) {
		value[m] = (float)m * scale;
		value[CODE_SIGN | m] = -value[m];
	}
	for (size_t i = 0; i < n; i++)
		x[i] = value[code[i]];
}

static void dequantize_add(const uint8_t *codes, float scale, float weight, size_t n, float *acc) {
	float values[BLOCK];
	dequantize(codes, scale, n, values);
	codec_kernels_best()->scaled_add(values, weight, acc, n);
}

static const struct block_format format = {
	.code_max = CODE_MAX,
	.code_bits = 4,
	.scale_max = 0x1.2492p+125f,
	.quantize = quantize,
	.largest = largest,
	.dequantize = dequantize,
	.dequantize_add = dequantize_add,
};

const struct codec codec_int4 = {
	.name = "int4",
	.id = 3,
	.block = BLOCK,
	.loses = 0.63,
	BLOCK_CODEC_OPS(&format),
};
