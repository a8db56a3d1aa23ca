/* codec_block.c: the scales of blocks; see codec_block.h. */
#include "outer/codec_block.h"

#define SCALE_KEPT_BITS 0xffffff80u /* sign, exponent and 16 of 23 fraction bits: a 17-bit significand */
#define SCALE_HALF_STEP 0x00000040u

float block_scale(const struct block_scales *s, float absmax) {
	if (absmax < s->code_max * BLOCK_SCALE_MIN)
		return 0;
	float scale = float_of_bits((float_bits(absmax / s->code_max) + SCALE_HALF_STEP) & SCALE_KEPT_BITS);
	return scale < s->most ? scale : s->most;
}

bool block_scale_valid(const struct block_scales *s, float scale) {
	bool in_range = scale >= BLOCK_SCALE_MIN && scale <= s->most;
	return in_range && (float_bits(scale) & ~SCALE_KEPT_BITS) == 0;
}

enum rv_err block_check(const struct block_scales *s, size_t b, float scale, unsigned most, unsigned code_most,
						struct rv_errtext *et) {
	if (float_bits(scale) == 0)
		return most == 0
				   ? RV_OK
				   : rv_fail(et, RV_E_CORRUPT, "%s block %zu: scale 0 but a value of magnitude %u", s->codec, b, most);
	if (!block_scale_valid(s, scale))
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %a is not a scale", s->codec, b, (double)scale);
	if (most != code_most)
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: largest magnitude %u, must be %u", s->codec, b, most,
					   code_most);
	return RV_OK;
}

enum rv_err block_not_finite(const struct block_scales *s, const float *x, size_t n, size_t offset,
							 struct rv_errtext *et) {
	size_t i = 0;
	while (i + 1 < n && float_is_finite(x[i]))
		i++;
	return rv_fail(et, RV_E_RANGE, "%s encode: value %zu is %g; only finite numbers can be sent", s->codec, offset + i,
				   (double)x[i]);
}
