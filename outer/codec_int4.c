/* codec_int4.c: four bits per value, evenly spaced: -7 to 7 times the block's scale. The format is in codec.h. */
#include "outer/codec_kernels.h"
#include "outer/codec_packed.h"

static void int4_magnitudes(const float *x, float inverse, uint8_t *code, size_t n) {
	int8_t q[PACKED_BLOCK];
	codec_kernels_best()->quantize(x, inverse, q, n);
	for (size_t i = 0; i < n; i++)
		code[i] = (uint8_t)(q[i] < 0 ? -q[i] : q[i]);
}

static const struct packed_format int4_format = {
	.bits = 4,
	.scales = {.codec = "int4", .code_max = 7, .most = 0x1.2492p+125f},
	.value = {0, 1, 2, 3, 4, 5, 6, 7},
	.magnitudes = int4_magnitudes,
};

RV_PACKED_CODEC(int4, 3, NULL)
