/* codec_int2.c: two bits per value: minus the block's largest magnitude, 0, or it. Rounded at random this is TernGrad
 * (Wen et al., arXiv 1705.07878, equations 1 and 3, by blocks); rounded to nearest it wants error feedback. The format
 * is in codec.h. */
#include "outer/codec_packed.h"

static const struct packed_format int2_format = {
	.bits = 2,
	.scales = {.codec = "int2", .code_max = 1, .most = 0x1.ffffp+127f},
	.value = {0, 1},
	.from = {0x1.000002p-1f}, /* a tie becomes 0 */
};

RV_PACKED_CODEC(int2, 6)
