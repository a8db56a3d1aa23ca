/* codec_int4.c: four bits per value, evenly spaced: -7 to 7 times the block's scale. The format is in codec.h. */
#include "outer/codec_packed.h"

static const struct packed_format int4_format = {
	.bits = 4,
	.scales = {.codec = "int4", .code_max = 7, .most = 0x1.2492p+125f},
	.value = {0, 1, 2, 3, 4, 5, 6, 7},
	/* ties to even: from just above 0.5, 2.5, 4.5, 6.5 */
	.from = {0x1.000002p-1f, 1.5f, 0x1.400002p1f, 3.5f, 0x1.200002p2f, 5.5f, 0x1.a00002p2f},
};

RV_PACKED_CODEC(int4, 3)
