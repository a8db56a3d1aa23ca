/* codec_kernels_avx2.c: the codecs' inner loops in AVX2. What is left after the last whole vector goes through the
 * portable loops, which give the same bits. */
#ifdef __x86_64__

#include "outer/codec_kernels.h"

#include "outer/float_bits.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

enum { LANES = 8 };

AVX2 static inline __m256i magnitude(__m256 x) {
	return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32((int)FLOAT_MAGNITUDE));
}

AVX2 static uint32_t reduce_max(__m256i v) {
	__m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(m);
}

static inline uint32_t larger(uint32_t a, uint32_t b) {
	return a > b ? a : b;
}

AVX2 static uint32_t absmax_bits(const float *x, size_t n) {
	__m256i most0 = _mm256_setzero_si256(), most1 = most0;
	size_t i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		most0 = _mm256_max_epi32(most0, magnitude(_mm256_loadu_ps(x + i)));
		most1 = _mm256_max_epi32(most1, magnitude(_mm256_loadu_ps(x + i + LANES)));
	}
	return larger(reduce_max(_mm256_max_epi32(most0, most1)), codec_kernels_portable.absmax_bits(x + i, n - i));
}

AVX2 static uint32_t delta_absmax_bits(const float *a, const float *b, float *d, size_t n) {
	__m256i most = _mm256_setzero_si256();
	size_t i = 0;
	for (; i + LANES <= n; i += LANES) {
		__m256 v = _mm256_sub_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
		_mm256_storeu_ps(d + i, v);
		most = _mm256_max_epi32(most, magnitude(v));
	}
	return larger(reduce_max(most), codec_kernels_portable.delta_absmax_bits(a + i, b + i, d + i, n - i));
}

AVX2 static void quantize(const float *x, float inverse, int8_t *q, size_t n) {
	const __m256 inv = _mm256_set1_ps(inverse);
	/* The packs work within 128-bit halves; this puts their groups of four back in order. */
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	size_t i = 0;
	for (; i + 4 * LANES <= n; i += 4 * LANES) {
		__m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), inv));
		__m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + LANES), inv));
		__m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 2 * LANES), inv));
		__m256i d = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 3 * LANES), inv));
		__m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
		_mm256_storeu_si256((__m256i *)(void *)(q + i), _mm256_permutevar8x32_epi32(bytes, order));
	}
	codec_kernels_portable.quantize(x + i, inverse, q + i, n - i);
}

AVX2 static unsigned absmax_int8(const int8_t *q, size_t n) {
	__m256i most = _mm256_setzero_si256();
	size_t i = 0;
	for (; i + 32 <= n; i += 32)
		most = _mm256_max_epu8(most, _mm256_abs_epi8(_mm256_loadu_si256((const __m256i *)(const void *)(q + i))));
	__m256i pair = _mm256_max_epu8(most, _mm256_srli_epi16(most, 8));
	__m256i quad = _mm256_max_epu8(pair, _mm256_srli_epi32(pair, 16));
	uint32_t head = reduce_max(_mm256_and_si256(quad, _mm256_set1_epi32(0xff)));
	return larger(head, codec_kernels_portable.absmax_int8(q + i, n - i));
}

AVX2 static inline __m256 widen(const int8_t *q) {
	return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)q)));
}

AVX2 static void dequantize(const int8_t *q, float scale, float *x, size_t n) {
	const __m256 s = _mm256_set1_ps(scale);
	size_t i = 0;
	for (; i + LANES <= n; i += LANES)
		_mm256_storeu_ps(x + i, _mm256_mul_ps(widen(q + i), s));
	codec_kernels_portable.dequantize(q + i, scale, x + i, n - i);
}

AVX2 static void dequantize_add(const int8_t *q, float scale, float weight, float *acc, size_t n) {
	const __m256 s = _mm256_set1_ps(scale), w = _mm256_set1_ps(weight);
	size_t i = 0;
	for (; i + LANES <= n; i += LANES) {
		__m256 v = _mm256_mul_ps(w, _mm256_mul_ps(widen(q + i), s));
		_mm256_storeu_ps(acc + i, _mm256_add_ps(_mm256_loadu_ps(acc + i), v));
	}
	codec_kernels_portable.dequantize_add(q + i, scale, weight, acc + i, n - i);
}

AVX2 static void scaled_add(const float *x, float weight, float *acc, size_t n) {
	const __m256 w = _mm256_set1_ps(weight);
	size_t i = 0;
	for (; i + LANES <= n; i += LANES) {
		__m256 v = _mm256_mul_ps(w, _mm256_loadu_ps(x + i));
		_mm256_storeu_ps(acc + i, _mm256_add_ps(_mm256_loadu_ps(acc + i), v));
	}
	codec_kernels_portable.scaled_add(x + i, weight, acc + i, n - i);
}

AVX2 static uint32_t squares_int8(const int8_t *q, size_t n) {
	__m256i sum = _mm256_setzero_si256();
	size_t i = 0;
	for (; i + 16 <= n; i += 16) {
		__m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(q + i)));
		sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, v));
	}
	__m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(four) + codec_kernels_portable.squares_int8(q + i, n - i);
}

AVX2 static double dot_int8(const int8_t *q, const float *y, size_t n) {
	__m256 low = _mm256_setzero_ps(), high = low;
	float lanes[CODEC_DOT_LANES];
	double sums[CODEC_DOT_LANES];
	size_t i = 0;
	for (; i + CODEC_DOT_LANES <= n; i += CODEC_DOT_LANES) {
		low = _mm256_add_ps(low, _mm256_mul_ps(widen(q + i), _mm256_loadu_ps(y + i)));
		high = _mm256_add_ps(high, _mm256_mul_ps(widen(q + i + LANES), _mm256_loadu_ps(y + i + LANES)));
	}
	_mm256_storeu_ps(lanes, low);
	_mm256_storeu_ps(lanes + LANES, high);
	for (; i < n; i++)
		lanes[i % CODEC_DOT_LANES] = lanes[i % CODEC_DOT_LANES] + (float)q[i] * y[i];
	for (int l = 0; l < CODEC_DOT_LANES; l++)
		sums[l] = (double)lanes[l];
	return codec_kernels_fold(sums);
}

/* Four products, exact, added to four lanes. */
AVX2 static inline void add_products(__m256d *lanes, const float *x, const float *y) {
	__m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x)), b = _mm256_cvtps_pd(_mm_loadu_ps(y));
	*lanes = _mm256_add_pd(*lanes, _mm256_mul_pd(a, b));
}

AVX2 static double dot(const float *x, const float *y, size_t n) {
	__m256d sums[CODEC_DOT_LANES / 4];
	double lanes[CODEC_DOT_LANES];
	size_t i = 0;
	for (int j = 0; j < CODEC_DOT_LANES / 4; j++)
		sums[j] = _mm256_setzero_pd();
	for (; i + CODEC_DOT_LANES <= n; i += CODEC_DOT_LANES)
		for (int j = 0; j < CODEC_DOT_LANES / 4; j++)
			add_products(&sums[j], x + i + 4 * j, y + i + 4 * j);
	for (int j = 0; j < CODEC_DOT_LANES / 4; j++)
		_mm256_storeu_pd(lanes + 4 * j, sums[j]);
	for (; i < n; i++)
		lanes[i % CODEC_DOT_LANES] += (double)x[i] * (double)y[i];
	return codec_kernels_fold(lanes);
}

const struct codec_kernels codec_kernels_avx2 = {
	.isa = "avx2",
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
