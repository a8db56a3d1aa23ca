/* codec_e3m0.c: four bits per value, a sign and three bits of exponent: 0 and the powers of two from 1 to 64 times the
 * block's scale, either sign; the 4-bit outer gradients of Streaming DiLoCo (arXiv 2501.18512). The format is in
 * codec.h. */
#include "outer/codec_packed.h"

static const struct packed_format e3m0_format = {
	.bits = 4,
	.scales = {.codec = "e3m0", .code_max = 64, .most = 0x1.ffffp+121f},
	.value = {0, 1, 2, 4, 8, 16, 32, 64},
	.from = {0.5f, 1.5f, 3, 6, 12, 24, 48}, /* halfway between neighbours */
};

RV_PACKED_CODEC(e3m0, 4)
