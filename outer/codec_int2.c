/* codec_int2.c: two bits per value: minus the block's largest magnitude, 0, or it. Rounded at random this is TernGrad (Wen et
 * al., arXiv 1705.07878, equations 1 and 3, by blocks); rounded to nearest it wants error feedback. The format is in
 * codec.h. */
#include "outer/codec_packed.h"

static void int2_magnitudes(const float *x, float inverse, uint8_t *code, size_t n) {
	for (size_t i = 0; i < n; i++)
		code[i] = float_of_bits(float_magnitude(x[i])) * inverse > 0.5f;
}

static const struct packed_format int2_format = {
	.bits = 2,
	.scales = {.codec = "int2", .code_max = 1, .most = 0x1.ffffp+127f},
	.value = {0, 1},
	.magnitudes = int2_magnitudes,
};

RV_PACKED_CODEC(int2, 6, &codec_int8)
