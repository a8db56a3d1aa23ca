/* word_rounded.h: the operands of products are rounded to bf16 but stay in fp32, for processors
 * without instructions for bf16: the results of bf16 everywhere, at the speed of fp32. See
 * pack.h. */
#include "kernels/cpu/isa/vec.h"

enum { K_PER_WORD = 1 };

/* Rounds to the nearest bf16, ties to even. NaN stays NaN. */
RV_ALWAYS_INLINE vf round_to_bf16(vf x) {
	vu bits = (vu)x, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
	return vblend((vu)(x == x), (vf)rounded, x);
}

RV_ALWAYS_INLINE vf word_lanes(const vf v[K_PER_WORD]) {
	return round_to_bf16(v[0]);
}

RV_ALWAYS_INLINE vf word_rows(const vf v[K_PER_WORD]) {
	return round_to_bf16(v[0]);
}
