/* transpose.h: VL x VL floats transposed in registers: log2(VL) rounds in which vectors exchange
 * halves. */
#ifndef RV_KERNELS_CPU_ISA_TRANSPOSE_H
#define RV_KERNELS_CPU_ISA_TRANSPOSE_H

#include "kernels/cpu/isa/vec.h"

/* Lane l of the round that exchanges blocks of h: from the first vector, or (>= VL) from the
 * second. */
#define LOW_(l, h)  (((l) & (h)) ? VL + (l) - (h) : (l))
#define HIGH_(l, h) (((l) & (h)) ? VL + (l) : (l) + (h))

#if defined(__AVX512F__)
#define LANES_(F, h)                                                                                                   \
	F(0, h), F(1, h), F(2, h), F(3, h), F(4, h), F(5, h), F(6, h), F(7, h), F(8, h), F(9, h), F(10, h), F(11, h),      \
		F(12, h), F(13, h), F(14, h), F(15, h)
#elif defined(__AVX2__)
#define LANES_(F, h) F(0, h), F(1, h), F(2, h), F(3, h), F(4, h), F(5, h), F(6, h), F(7, h)
#else
#define LANES_(F, h) F(0, h), F(1, h), F(2, h), F(3, h)
#endif

#define EXCHANGE_(r, h)                                                                                                \
	_Pragma("GCC unroll 16") for (int i = 0; i < VL; i++) if (!(i & (h))) {                                            \
		vf a = (r)[i], b = (r)[i + (h)];                                                                               \
		(r)[i] = __builtin_shufflevector(a, b, LANES_(LOW_, h));                                                       \
		(r)[i + (h)] = __builtin_shufflevector(a, b, LANES_(HIGH_, h));                                                \
	}

RV_ALWAYS_INLINE void vtranspose(vf r[VL]) {
#if defined(__AVX512F__)
	EXCHANGE_(r, 8)
#endif
#if defined(__AVX2__)
	EXCHANGE_(r, 4)
#endif
	EXCHANGE_(r, 2)
	EXCHANGE_(r, 1)
}

/* Computes dst[j * dst_ld + i] = scale * src[i * src_ld + j] for i < rows <= VL, j < cols <= VL.
 * Always writes VL lanes of each of the cols rows of dst: those past `rows` are 0. */
RV_ALWAYS_INLINE void transpose_block(float *dst, ptrdiff_t dst_ld, const float *src, ptrdiff_t src_ld, int rows,
									  int cols, vf scale) {
	vf r[VL];
	if (cols >= VL) {
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++)
			r[i] = i < rows ? vload(src + i * src_ld) * scale : vset1(0);
		vtranspose(r);
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++)
			vstore(dst + i * dst_ld, r[i]);
		return;
	}
	for (int i = 0; i < VL; i++)
		r[i] = i < rows ? vload_n(src + i * src_ld, cols) * scale : vset1(0);
	vtranspose(r);
	for (int i = 0; i < VL && i < cols; i++)
		vstore(dst + i * dst_ld, r[i]);
}

/* Does the same for any size: dst (cols, dst_ld), with 0 in lanes [rows, rows rounded up to VL). */
static inline void transpose(float *dst, ptrdiff_t dst_ld, const float *src, ptrdiff_t src_ld, int rows, int cols,
							 float scale) {
	for (int i = 0; i < rows; i += VL)
		for (int j = 0; j < cols; j += VL)
			transpose_block(dst + j * dst_ld + i, dst_ld, src + i * src_ld + j, src_ld, rows - i, cols - j,
							vset1(scale));
}

#endif
