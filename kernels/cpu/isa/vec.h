/* vec.h: one vector of floats, as wide as the instruction set that this file is being compiled for.
 *
 * Every file of this folder is compiled once per instruction set (see kernels/CMakeLists.txt), with
 * RV_ISA naming it: avx512, avx2, neon or portable. Kernels are written once, over `vf` (VL floats)
 * and the few operations below; only here are operations without a GCC vector extension, as
 * intrinsics. */
#ifndef RV_KERNELS_CPU_ISA_VEC_H
#define RV_KERNELS_CPU_ISA_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { VL = 16 };
#elif defined(__AVX2__)
#include <immintrin.h>
enum { VL = 8 };
#elif defined(RV_NEON)
#include <arm_neon.h>
enum { VL = 4 };
#else
enum { VL = 4 };
#endif

#define RV_PASTE_(a, b)  a##_##b
#define RV_PASTE(a, b)   RV_PASTE_(a, b)
#define ISA(name)        RV_PASTE(name, RV_ISA) /* layernorm_rows_avx512 */
#define RV_ALWAYS_INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(VL * 4)));
typedef uint32_t vu __attribute__((vector_size(VL * 4)));
typedef float vf_unaligned __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef float vf_half_unaligned __attribute__((vector_size(VL * 2), aligned(4), may_alias));
typedef double vd __attribute__((vector_size(VL * 4))); /* VL / 2 doubles */

RV_ALWAYS_INLINE vf vset1(float x) {
	return x - (vf){0}; /* x - 0 is x, also for -0 and NaN */
}

RV_ALWAYS_INLINE vf vload(const float *p) {
	return *(const vf_unaligned *)p;
}

RV_ALWAYS_INLINE void vstore(float *p, vf v) {
	*(vf_unaligned *)p = v;
}

/* Returns the first k of VL lanes and 0 in the others. k may be larger than VL. */
RV_ALWAYS_INLINE vf vload_n(const float *p, ptrdiff_t k) {
	if (k >= VL)
		return vload(p);
#if defined(__AVX512F__)
	return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << k) - 1), p);
#else
	float lanes[VL] = {0};
	memcpy(lanes, p, (size_t)k * sizeof *p);
	return vload(lanes);
#endif
}

RV_ALWAYS_INLINE void vstore_n(float *p, vf v, ptrdiff_t k) {
	if (k >= VL) {
		vstore(p, v);
		return;
	}
#if defined(__AVX512F__)
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << k) - 1), (__m512)v);
#else
	float lanes[VL];
	vstore(lanes, v);
	memcpy(p, lanes, (size_t)k * sizeof *p);
#endif
}

/* Returns a * b + c: fused where the instruction set has it. */
RV_ALWAYS_INLINE vf vfma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
	return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
	return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(RV_NEON)
	return vfmaq_f32(c, a, b);
#else
	return a * b + c;
#endif
}

RV_ALWAYS_INLINE vf vblend(vu mask, vf yes, vf no) {
	return (vf)((mask & (vu)yes) | (~mask & (vu)no));
}

/* Returns the larger; b if either is NaN: pass a value that may be NaN as `b` to keep it. */
RV_ALWAYS_INLINE vf vmax(vf a, vf b) {
#if defined(__AVX512F__)
	return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
	return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(RV_NEON)
	return vbslq_f32(vcgtq_f32(a, b), a, b); /* FMAX would return NaN for either */
#else
	return vblend((vu)(a > b), a, b);
#endif
}

RV_ALWAYS_INLINE vf vmin(vf a, vf b) {
#if defined(__AVX512F__)
	return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
	return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(RV_NEON)
	return vbslq_f32(vcltq_f32(a, b), a, b);
#else
	return vblend((vu)(a < b), a, b);
#endif
}

RV_ALWAYS_INLINE vf vsqrt(vf a) {
#if defined(__AVX512F__)
	return (vf)_mm512_sqrt_ps((__m512)a);
#elif defined(__AVX2__)
	return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined(RV_NEON)
	return vsqrtq_f32(a);
#else
	vf r;
	for (int i = 0; i < VL; i++)
		r[i] = __builtin_sqrtf(a[i]);
	return r;
#endif
}

RV_ALWAYS_INLINE vf viota(void) {
	vf r;
	for (int i = 0; i < VL; i++)
		r[i] = (float)i;
	return r;
}

/* Returns v in lanes at and after `first`, `fill` before. */
RV_ALWAYS_INLINE vf vkeep_from(vf v, int first, vf fill) {
#if defined(__AVX512F__)
	return (vf)_mm512_mask_blend_ps((__mmask16)(first <= 0   ? 0xffff
												: first < VL ? 0xffffu << first
															 : 0),
									(__m512)fill, (__m512)v);
#else
	return vblend((vu)(viota() >= vset1((float)first)), v, fill);
#endif
}

/* Returns 2^x with a relative error below 2e-7, 0 below 2^-126; x < 128. NaN stays NaN.
 *
 * x = k + r with k a whole number and |r| <= 1/2; 2^r is a polynomial fitted to a minimax error of
 * 9e-8. */
RV_ALWAYS_INLINE vf vexp2_fraction(vf r) {
	vf p = vset1(0x1.5bba14p-10f);
	p = vfma(p, r, vset1(0x1.3cea88p-7f));
	p = vfma(p, r, vset1(0x1.c6b752p-5f));
	p = vfma(p, r, vset1(0x1.ebf9bcp-3f));
	p = vfma(p, r, vset1(0x1.62e42ap-1f));
	return vfma(p, r, vset1(1));
}

RV_ALWAYS_INLINE vf vexp2(vf x) {
#if defined(__AVX512F__)
	__m512 k = _mm512_roundscale_ps((__m512)x, 0);
	return (vf)_mm512_scalef_ps((__m512)vexp2_fraction(x - (vf)k), k);
#else
	const vf magic = vset1(0x1.8p23f); /* adding it rounds to a whole number in the low bits of the mantissa */
	x = vmax(vset1(-126), x);
	vf shifted = x + magic, r = x - (shifted - magic);
	return vexp2_fraction(r) * (vf)(((vu)shifted << 23) + 0x3f800000u);
#endif
}

/* Horizontal reductions: always the same tree, halves onto halves. */
RV_ALWAYS_INLINE float vreduce_add(vf v) {
#if defined(RV_NEON)
	float32x2_t half = vadd_f32(vget_low_f32(v), vget_high_f32(v));
	return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
#else
	float lanes[VL];
	vstore(lanes, v);
#pragma GCC unroll 4
	for (int half = VL / 2; half > 0; half /= 2)
#pragma GCC unroll 8
		for (int i = 0; i < half; i++)
			lanes[i] += lanes[i + half];
	return lanes[0];
#endif
}

RV_ALWAYS_INLINE float vreduce_max(vf v) {
	float lanes[VL];
	vstore(lanes, v);
	for (int half = VL / 2; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
	return lanes[0];
}

/* Returns VL / 2 floats as doubles. */
RV_ALWAYS_INLINE vd vload_wide(const float *p) {
	return __builtin_convertvector(*(const vf_half_unaligned *)p, vd);
}

/* Returns e^x with a relative error below 2e-7. Saturates at e^-87.3 and e^88.3; NaN stays NaN.
 *
 * x = k ln 2 + r with k a whole number and |r| <= ln 2 / 2. k comes from adding 1.5 * 2^23, which
 * rounds to a whole number in the low bits of the mantissa; ln 2 is split so that k * ln2_hi is
 * exact. e^r - 1 - r is r^2 times a polynomial fitted to a minimax error of 3e-9. */
RV_ALWAYS_INLINE vf vexp(vf x) {
	const vf magic = vset1(0x1.8p23f), log2_e = vset1(0x1.715476p0f);
	const vf ln2_hi = vset1(-0x1.62e4p-1f), ln2_lo = vset1(-0x1.7f7d1cp-20f);
	x = vmax(vset1(-87.3f), vmin(vset1(88.3f), x));
	vf shifted = vfma(x, log2_e, magic), k = shifted - magic;
	vf r = vfma(k, ln2_lo, vfma(k, ln2_hi, x));
	vf p = vset1(0x1.6a244cp-10f);
	p = vfma(p, r, vset1(0x1.1239d4p-7f));
	p = vfma(p, r, vset1(0x1.5558f2p-5f));
	p = vfma(p, r, vset1(0x1.555492p-3f));
	p = vfma(p, r, vset1(0x1.fffffcp-2f));
	p = vfma(p, r * r, r + vset1(1));
	vf two_to_k = (vf)(((vu)shifted << 23) + 0x3f800000u);
	return p * two_to_k;
}

#endif
