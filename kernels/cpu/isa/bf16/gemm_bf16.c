/* gemm_bf16.c: packed products in bf16 with AVX512_BF16: operands are converted while they are packed, and one
 * instruction multiplies two pairs of every lane and adds them in fp32, so a word of a panel is two consecutive k.
 *
 * The idea: the conversion is free, since packing reads and writes every element anyway, and packed operands are half
 * as large. Results differ from rounded fp32 products in the last bits: the instruction flushes denormals and rounds
 * in its own order.
 *
 * Measured (one Zen 5 core): whole products of a training step 380 to 485 GFLOP/s, 1.8 to 2 times those in fp32
 * (bench_kernels --bf16 --threads 1). */
#define TILE_BROADCAST(p) ((vf)_mm512_castsi512_ps(_mm512_set1_epi32(word_bits(p))))
#define TILE_MULTIPLY_ADD(a, b, c)                                                                                     \
	((vf)_mm512_dpbf16_ps((__m512)(c), (__m512bh)_mm512_castps_si512((__m512)(a)),                                     \
						  (__m512bh)_mm512_castps_si512((__m512)(b))))

#include "kernels/cpu/isa/vec.h"

enum { K_PER_WORD = 2 };

RV_ALWAYS_INLINE int word_bits(const float *p) {
	int bits;
	memcpy(&bits, p, sizeof bits);
	return bits;
}

RV_ALWAYS_INLINE vf words_along_k(const float *src, int left) {
	vf low = vload_n(src, left), high = left > VL ? vload_n(src + VL, left - VL) : vset1(0);
	return (vf)(__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

RV_ALWAYS_INLINE vf words_along_row(const float *src, ptrdiff_t ld, int rows, int left) {
	vf low = vload_n(src, rows), high = left > 1 ? vload_n(src + ld, rows) : vset1(0);
	__m512i low_words = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)low));
	__m512i high_words = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)high));
	return (vf)_mm512_or_si512(low_words, _mm512_slli_epi32(high_words, 16));
}

#include "kernels/cpu/isa/gemm_panels.h"

const struct gemm_kernels gemm_kernels_avx512_bf16 = GEMM_KERNELS("bf16");
