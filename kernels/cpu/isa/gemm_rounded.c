/* gemm_rounded.c: packed products of operands rounded to bf16, for processors that have no instruction for them: the
 * results of bf16 everywhere, at the speed of fp32. */
#include "kernels/cpu/isa/vec.h"

enum { K_PER_WORD = 1 };

/* To the nearest bf16, ties to even. NaN stays NaN. */
RV_ALWAYS_INLINE vf round_to_bf16(vf x) {
	vu bits = (vu)x, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
	return vblend((vu)(x == x), (vf)rounded, x);
}

RV_ALWAYS_INLINE vf words_along_k(const float *src, int left) {
	return round_to_bf16(vload_n(src, left));
}

RV_ALWAYS_INLINE vf words_along_row(const float *src, ptrdiff_t ld, int rows, int left) {
	(void)ld;
	(void)left;
	return round_to_bf16(vload_n(src, rows));
}

#include "kernels/cpu/isa/gemm_panels.h"

const struct gemm_kernels ISA(gemm_rounded) = GEMM_KERNELS("bf16 rounded");
