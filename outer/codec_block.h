/* codec_block.h: what codecs with one scale per block of values share. Private to outer/.
 *
 * A scale is zero, for blocks too small to scale without denormals, or of 17 significant bits in [2^-126, most]: then
 * the scale times a code of up to 7 bits is exact (times one of 15 bits it is rounded once), the scale of a decoded
 * block is the scale again, and the rounding in a sum of equal blocks disappears in it. */
#ifndef RV_OUTER_CODEC_BLOCK_H
#define RV_OUTER_CODEC_BLOCK_H

#include "base/err.h"
#include "outer/float_bits.h"

#include <stddef.h>

#define BLOCK_SCALE_MIN 0x1p-126f

struct block_scales {
	const char *codec; /* for texts */
	float code_max;    /* the largest code, which stands for the block's absmax */
	float most;        /* the largest 17-bit scale with code_max * scale <= FLT_MAX */
};

/* The scale for a block of that absmax, finite: absmax / code_max, its significand rounded to 17 bits (nearest, ties
 * away from zero); 0 when absmax < code_max * 2^-126. */
float block_scale(const struct block_scales *s, float absmax);
/* What block_scale could have returned, other than 0; false for NaN. */
bool block_scale_valid(const struct block_scales *s, float scale);
/* Refuses a block that no encoder can have written: a scale that is none, codes without a scale, or a largest magnitude
 * `most` of its codes other than `code_most`. RV_E_CORRUPT, with block number b in the text. */
enum rv_err block_check(const struct block_scales *s, size_t b, float scale, unsigned most, unsigned code_most,
						struct rv_errtext *et);
/* RV_E_RANGE: says which of x (n values, which begin at `offset` of the chunk) is the first that is not finite. */
enum rv_err block_not_finite(const struct block_scales *s, const float *x, size_t n, size_t offset,
							 struct rv_errtext *et);

#endif
