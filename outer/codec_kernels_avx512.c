/* codec_kernels_avx512.c: the codecs' inner loops in AVX-512 F and BW. Tails are masked, so there is one loop each. */
#ifdef __x86_64__

#include "outer/codec_kernels.h"

#include "outer/float_bits.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw")))

enum { LANES = 16, UNROLL = 4 * LANES };

AVX512 static inline __mmask16 mask_of(size_t left) {
	unsigned bits = left >= LANES ? 0xffffu : (1u << left) - 1;
	return (__mmask16)bits;
}

AVX512 static inline __m512i magnitude(__m512 x) {
	return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32((int)FLOAT_MAGNITUDE));
}

AVX512 static uint32_t absmax_bits(const float *x, size_t n) {
	__m512i most0 = _mm512_setzero_si512(), most1 = most0, most2 = most0, most3 = most0;
	size_t i = 0;
	for (; i + UNROLL <= n; i += UNROLL) {
		most0 = _mm512_max_epi32(most0, magnitude(_mm512_loadu_ps(x + i)));
		most1 = _mm512_max_epi32(most1, magnitude(_mm512_loadu_ps(x + i + LANES)));
		most2 = _mm512_max_epi32(most2, magnitude(_mm512_loadu_ps(x + i + 2 * LANES)));
		most3 = _mm512_max_epi32(most3, magnitude(_mm512_loadu_ps(x + i + 3 * LANES)));
	}
	for (; i < n; i += LANES)
		most0 = _mm512_max_epi32(most0, magnitude(_mm512_maskz_loadu_ps(mask_of(n - i), x + i)));
	most0 = _mm512_max_epi32(_mm512_max_epi32(most0, most1), _mm512_max_epi32(most2, most3));
	return (uint32_t)_mm512_reduce_max_epi32(most0);
}

AVX512 static uint32_t delta_absmax_bits(const float *a, const float *b, float *d, size_t n) {
	__m512i most0 = _mm512_setzero_si512(), most1 = most0;
	size_t i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		__m512 d0 = _mm512_sub_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
		__m512 d1 = _mm512_sub_ps(_mm512_loadu_ps(a + i + LANES), _mm512_loadu_ps(b + i + LANES));
		_mm512_storeu_ps(d + i, d0);
		_mm512_storeu_ps(d + i + LANES, d1);
		most0 = _mm512_max_epi32(most0, magnitude(d0));
		most1 = _mm512_max_epi32(most1, magnitude(d1));
	}
	for (; i < n; i += LANES) {
		__mmask16 k = mask_of(n - i);
		__m512 d0 = _mm512_sub_ps(_mm512_maskz_loadu_ps(k, a + i), _mm512_maskz_loadu_ps(k, b + i));
		_mm512_mask_storeu_ps(d + i, k, d0);
		most0 = _mm512_max_epi32(most0, magnitude(d0));
	}
	return (uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(most0, most1));
}

AVX512 static inline __m128i quantize_lanes(__m512 x, __m512 inverse) {
	return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x, inverse)));
}

AVX512 static void quantize(const float *x, float inverse, int8_t *q, size_t n) {
	const __m512 inv = _mm512_set1_ps(inverse);
	size_t i = 0;
	for (; i + UNROLL <= n; i += UNROLL)
		for (size_t j = i; j < i + UNROLL; j += LANES)
			_mm_storeu_si128((__m128i *)(void *)(q + j), quantize_lanes(_mm512_loadu_ps(x + j), inv));
	for (; i < n; i += LANES) {
		__mmask16 k = mask_of(n - i);
		__m512i rounded = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(k, x + i), inv));
		_mm512_mask_cvtepi32_storeu_epi8(q + i, k, rounded);
	}
}

AVX512 static unsigned absmax_int8(const int8_t *q, size_t n) {
	__m512i most = _mm512_setzero_si512();
	for (size_t i = 0; i < n; i += 64) {
		__mmask64 k = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
		/* |-128| is 128 as an unsigned byte */
		most = _mm512_max_epu8(most, _mm512_abs_epi8(_mm512_maskz_loadu_epi8(k, q + i)));
	}
	__m512i high = _mm512_srli_epi16(most, 8), low = _mm512_and_si512(most, _mm512_set1_epi16(0xff));
	__m512i pair = _mm512_max_epu16(high, low); /* as 32-bit lanes: two 16-bit maxima */
	__m512i both = _mm512_max_epu16(pair, _mm512_srli_epi32(pair, 16));
	return (unsigned)_mm512_reduce_max_epi32(_mm512_and_si512(both, _mm512_set1_epi32(0xffff)));
}

AVX512 static inline __m512 widen(const int8_t *q) {
	return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)q)));
}

/* The last, partial vector of values: the bytes past the end are not touched. */
AVX512 static inline __m512 widen_tail(const int8_t *q, size_t left) {
	__m512i bytes = _mm512_maskz_loadu_epi8(((__mmask64)1 << left) - 1, q);
	return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm512_castsi512_si128(bytes)));
}

AVX512 static void dequantize(const int8_t *q, float scale, float *x, size_t n) {
	const __m512 s = _mm512_set1_ps(scale);
	size_t i = 0;
	for (; i + LANES <= n; i += LANES)
		_mm512_storeu_ps(x + i, _mm512_mul_ps(widen(q + i), s));
	if (i < n)
		_mm512_mask_storeu_ps(x + i, mask_of(n - i), _mm512_mul_ps(widen_tail(q + i, n - i), s));
}

AVX512 static void dequantize_add(const int8_t *q, float scale, float weight, float *acc, size_t n) {
	const __m512 s = _mm512_set1_ps(scale), w = _mm512_set1_ps(weight);
	size_t i = 0;
	for (; i + LANES <= n; i += LANES) {
		__m512 v = _mm512_mul_ps(w, _mm512_mul_ps(widen(q + i), s));
		_mm512_storeu_ps(acc + i, _mm512_add_ps(_mm512_loadu_ps(acc + i), v));
	}
	if (i < n) {
		__mmask16 k = mask_of(n - i);
		__m512 v = _mm512_mul_ps(w, _mm512_mul_ps(widen_tail(q + i, n - i), s));
		_mm512_mask_storeu_ps(acc + i, k, _mm512_add_ps(_mm512_maskz_loadu_ps(k, acc + i), v));
	}
}

AVX512 static void scaled_add(const float *x, float weight, float *acc, size_t n) {
	const __m512 w = _mm512_set1_ps(weight);
	for (size_t i = 0; i < n; i += LANES) {
		__mmask16 k = mask_of(n - i);
		__m512 v = _mm512_mul_ps(w, _mm512_maskz_loadu_ps(k, x + i));
		_mm512_mask_storeu_ps(acc + i, k, _mm512_add_ps(_mm512_maskz_loadu_ps(k, acc + i), v));
	}
}

AVX512 static uint32_t squares_int8(const int8_t *q, size_t n) {
	__m512i sum = _mm512_setzero_si512();
	size_t i = 0;
	for (; i + 32 <= n; i += 32) {
		__m512i v = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(q + i)));
		sum = _mm512_add_epi32(sum, _mm512_madd_epi16(v, v));
	}
	return (uint32_t)_mm512_reduce_add_epi32(sum) + codec_kernels_portable.squares_int8(q + i, n - i);
}

AVX512 static double dot_int8(const int8_t *q, const float *y, size_t n) {
	__m512 sum = _mm512_setzero_ps();
	float lanes[CODEC_DOT_LANES];
	double sums[CODEC_DOT_LANES];
	size_t i = 0;
	for (; i + CODEC_DOT_LANES <= n; i += CODEC_DOT_LANES)
		sum = _mm512_add_ps(sum, _mm512_mul_ps(widen(q + i), _mm512_loadu_ps(y + i)));
	_mm512_storeu_ps(lanes, sum);
	for (; i < n; i++)
		lanes[i % CODEC_DOT_LANES] = lanes[i % CODEC_DOT_LANES] + (float)q[i] * y[i];
	for (int l = 0; l < CODEC_DOT_LANES; l++)
		sums[l] = (double)lanes[l];
	return codec_kernels_fold(sums);
}

/* Eight products, exact, added to eight lanes. */
AVX512 static inline __m512d add_products(__m512d lanes, const float *x, const float *y) {
	__m512d a = _mm512_cvtps_pd(_mm256_loadu_ps(x)), b = _mm512_cvtps_pd(_mm256_loadu_ps(y));
	return _mm512_add_pd(lanes, _mm512_mul_pd(a, b));
}

AVX512 static double dot(const float *x, const float *y, size_t n) {
	__m512d low = _mm512_setzero_pd(), high = low;
	double lanes[CODEC_DOT_LANES];
	size_t i = 0;
	for (; i + CODEC_DOT_LANES <= n; i += CODEC_DOT_LANES) {
		low = add_products(low, x + i, y + i);
		high = add_products(high, x + i + 8, y + i + 8);
	}
	_mm512_storeu_pd(lanes, low);
	_mm512_storeu_pd(lanes + 8, high);
	for (; i < n; i++)
		lanes[i % CODEC_DOT_LANES] += (double)x[i] * (double)y[i];
	return codec_kernels_fold(lanes);
}

const struct codec_kernels codec_kernels_avx512 = {
	.isa = "avx512",
	.absmax_bits = absmax_bits,
	.delta_absmax_bits = delta_absmax_bits,
	.quantize = quantize,
	.absmax_int8 = absmax_int8,
	.dequantize = dequantize,
	.dequantize_add = dequantize_add,
	.scaled_add = scaled_add,
	.squares_int8 = squares_int8,
	.dot_int8 = dot_int8,
	.dot = dot,
};

#endif
