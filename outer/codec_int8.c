/* codec_int8.c: symmetric int8, one scale per block of 256 values. The format and its properties
 * are in codec.h; the loops over blocks are in codec_block.c, those over values in
 * codec_kernels.c. */
#include "outer/codec_block.h"
#include "outer/codec_kernels.h"

static void quantize(const float *x, float inverse, size_t n, uint8_t *codes) {
	codec_kernels_best()->quantize(x, inverse, (int8_t *)codes, n);
}

static enum rv_err largest(const uint8_t *codes, size_t n, size_t b, unsigned *most, struct rv_errtext *et) {
	(void)b;
	(void)et;
	*most = codec_kernels_best()->absmax_int8((const int8_t *)codes, n);
	return RV_OK;
}

static void dequantize(const uint8_t *codes, float scale, size_t n, float *x) {
	codec_kernels_best()->dequantize((const int8_t *)codes, scale, x, n);
}

static void dequantize_add(const uint8_t *codes, float scale, float weight, size_t n, float *acc) {
	codec_kernels_best()->dequantize_add((const int8_t *)codes, scale, weight, acc, n);
}

/* Adds, for each block, the sum of the integers' squares, exact, times the scale's square, exact:
 * one rounding, and one in the sum. */
static double sum_squares(const struct codec *self, const uint8_t *in, size_t n) {
	const struct codec_kernels *k = codec_kernels_best();
	double sum = 0;
	for (size_t b = 0; b < block_count(self, n); b++) {
		const struct block_view v = block_view(self, in, n, b);
		sum += (double)v.scale * (double)v.scale * (double)k->squares_int8((const int8_t *)v.codes, v.len);
	}
	return sum;
}

static double dot(const struct codec *self, const uint8_t *in, size_t n, const float *y) {
	const struct codec_kernels *k = codec_kernels_best();
	double sum = 0;
	for (size_t b = 0; b < block_count(self, n); b++) {
		const struct block_view v = block_view(self, in, n, b);
		sum += (double)v.scale * k->dot_int8((const int8_t *)v.codes, y + v.first, v.len);
	}
	return sum;
}

static const struct block_format format = {
	.code_max = 127,
	.code_bits = 8,
	.scale_max = 0x1.0204p+121f,
	.quantize = quantize,
	.largest = largest,
	.dequantize = dequantize,
	.dequantize_add = dequantize_add,
};

const struct codec codec_int8 = {
	.name = "int8",
	.id = 1,
	.block = 256,
	.loses = 0.064,
	BLOCK_CODEC_OPS(&format),
	.sum_squares = sum_squares,
	.dot = dot,
};
