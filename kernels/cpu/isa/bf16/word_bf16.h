/* word_bf16.h: the operands of products are bf16 and a word is two of them: AVX512_BF16, or BFDOT
 * of ARM's FEAT_BF16, multiplies two pairs of every lane and adds them in fp32 in one instruction.
 * Rounding is to nearest even, as in word_rounded.h; the results differ from products of rounded
 * fp32 in the last bits, since the instruction flushes denormals and rounds in its own order. See
 * pack.h. */
#if defined(RV_NEON)
#define TILE_BROADCAST(p)          vld1q_dup_f32(p)
#define TILE_MULTIPLY_ADD(a, b, c) vbfdotq_f32(c, (bfloat16x8_t)(a), (bfloat16x8_t)(b))
#else
#define TILE_BROADCAST(p) ((vf)_mm512_castsi512_ps(_mm512_set1_epi32(word_bits(p))))
#define TILE_MULTIPLY_ADD(a, b, c)                                                                                     \
	((vf)_mm512_dpbf16_ps((__m512)(c), (__m512bh)_mm512_castps_si512((__m512)(a)),                                     \
						  (__m512bh)_mm512_castps_si512((__m512)(b))))
#endif

#include "kernels/cpu/isa/vec.h"

enum { K_PER_WORD = 2 };

#if !defined(RV_NEON)
RV_ALWAYS_INLINE int word_bits(const float *p) {
	int bits;
	memcpy(&bits, p, sizeof bits);
	return bits;
}
#endif

RV_ALWAYS_INLINE vf word_lanes(const vf v[K_PER_WORD]) {
#if defined(RV_NEON)
	return (vf)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(v[0]), v[1]);
#else
	return (vf)(__m512i)_mm512_cvtne2ps_pbh((__m512)v[1], (__m512)v[0]);
#endif
}

RV_ALWAYS_INLINE vf word_rows(const vf v[K_PER_WORD]) {
#if defined(RV_NEON)
	uint16x8_t lanes = (uint16x8_t)word_lanes(v);
	return (vf)vzip1q_u16(lanes, vextq_u16(lanes, lanes, VL));
#else
	const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
										 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	return (vf)_mm512_permutexvar_epi16(zip, (__m512i)word_lanes(v));
#endif
}
