/* codec_kernels.c: the inner loops of the codecs, written once and compiled for each instruction
 * set. */
#include "outer/codec_kernels.h"

#include "outer/elementwise.h"
#include "outer/float_bits.h"

/* Adding 1.5 * 2^23 leaves an fp32 of magnitude below 2^22 rounded to an integer (nearest even) in
 * the low bits. */
#define ROUNDING_MAGIC 12582912.0f

#define BODY static inline __attribute__((always_inline))

BODY uint32_t absmax_bits_body(const float *x, size_t n) {
	int32_t most = 0; /* magnitudes have no sign bit: vectors compare them as signed integers */
	for (size_t i = 0; i < n; i++) {
		const int32_t m = (int32_t)float_magnitude(x[i]);
		most = m > most ? m : most;
	}
	return (uint32_t)most;
}

BODY uint32_t delta_absmax_bits_body(const float *a, const float *b, float *restrict d, size_t n) {
	int32_t most = 0;
	for (size_t i = 0; i < n; i++) {
		const float delta = a[i] - b[i];
		const int32_t m = (int32_t)float_magnitude(delta);
		d[i] = delta;
		most = m > most ? m : most;
	}
	return (uint32_t)most;
}

BODY void quantize_body(const float *restrict x, float inverse, int8_t *restrict q, size_t n) {
	for (size_t i = 0; i < n; i++)
		q[i] = (int8_t)(int32_t)(float_bits(x[i] * inverse + ROUNDING_MAGIC) - float_bits(ROUNDING_MAGIC));
}

BODY unsigned absmax_int8_body(const int8_t *q, size_t n) {
	uint8_t most = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t m = (uint8_t)(q[i] < 0 ? -q[i] : q[i]);
		most = m > most ? m : most;
	}
	return most;
}

BODY void dequantize_body(const int8_t *restrict q, float scale, float *restrict x, size_t n) {
	for (size_t i = 0; i < n; i++)
		x[i] = (float)q[i] * scale;
}

BODY void dequantize_add_body(const int8_t *restrict q, float scale, float weight, float *restrict acc, size_t n) {
	for (size_t i = 0; i < n; i++)
		acc[i] = acc[i] + weight * ((float)q[i] * scale);
}

BODY void scaled_add_body(const float *restrict x, float weight, float *restrict acc, size_t n) {
	for (size_t i = 0; i < n; i++)
		acc[i] = acc[i] + weight * x[i];
}

BODY uint32_t squares_int8_body(const int8_t *q, size_t n) {
	int32_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += q[i] * q[i];
	return (uint32_t)sum;
}

/* Adds the lanes up: lane l adds lane l + 8, then l + 4, l + 2, l + 1. Overwrites them. */
static double fold(double lanes[CODEC_DOT_LANES]) {
	for (int half = CODEC_DOT_LANES / 2; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] = lanes[l] + lanes[l + half];
	return lanes[0];
}

BODY double dot_int8_body(const int8_t *q, const float *y, size_t n) {
	float sums[CODEC_DOT_LANES] = {0};
	double lanes[CODEC_DOT_LANES];
	size_t i = 0;
	for (; i + CODEC_DOT_LANES <= n; i += CODEC_DOT_LANES) {
		float codes[CODEC_DOT_LANES];
		for (size_t l = 0; l < CODEC_DOT_LANES; l++)
			codes[l] = (float)q[i + l];
		for (size_t l = 0; l < CODEC_DOT_LANES; l++)
			sums[l] = sums[l] + codes[l] * y[i + l];
	}
	for (; i < n; i++)
		sums[i % CODEC_DOT_LANES] = sums[i % CODEC_DOT_LANES] + (float)q[i] * y[i];
	for (int l = 0; l < CODEC_DOT_LANES; l++)
		lanes[l] = (double)sums[l];
	return fold(lanes);
}

BODY double dot_body(const float *x, const float *y, size_t n) {
	double lanes[CODEC_DOT_LANES] = {0};
	size_t i = 0;
	for (; i + CODEC_DOT_LANES <= n; i += CODEC_DOT_LANES)
		for (int l = 0; l < CODEC_DOT_LANES; l++)
			lanes[l] += (double)x[i + (size_t)l] * (double)y[i + (size_t)l];
	for (; i < n; i++)
		lanes[i % CODEC_DOT_LANES] += (double)x[i] * (double)y[i];
	return fold(lanes);
}

/* Defines the table codec_kernels_SET, whose functions are the bodies compiled with the attribute
 * `target`. */
#define KERNEL(set, target, type, name, params, args)                                                                  \
	target static type name##_##set params {                                                                           \
		return name##_body args;                                                                                       \
	}
#define KERNEL_SET(set, target)                                                                                        \
	KERNEL(set, target, uint32_t, absmax_bits, (const float *x, size_t n), (x, n))                                     \
	KERNEL(set, target, uint32_t, delta_absmax_bits, (const float *a, const float *b, float *d, size_t n),             \
		   (a, b, d, n))                                                                                               \
	KERNEL(set, target, void, quantize, (const float *x, float inverse, int8_t *q, size_t n), (x, inverse, q, n))      \
	KERNEL(set, target, unsigned, absmax_int8, (const int8_t *q, size_t n), (q, n))                                    \
	KERNEL(set, target, void, dequantize, (const int8_t *q, float scale, float *x, size_t n), (q, scale, x, n))        \
	KERNEL(set, target, void, dequantize_add, (const int8_t *q, float scale, float weight, float *acc, size_t n),      \
		   (q, scale, weight, acc, n))                                                                                 \
	KERNEL(set, target, void, scaled_add, (const float *x, float weight, float *acc, size_t n), (x, weight, acc, n))   \
	KERNEL(set, target, uint32_t, squares_int8, (const int8_t *q, size_t n), (q, n))                                   \
	KERNEL(set, target, double, dot_int8, (const int8_t *q, const float *y, size_t n), (q, y, n))                      \
	KERNEL(set, target, double, dot, (const float *x, const float *y, size_t n), (x, y, n))                            \
	const struct codec_kernels codec_kernels_##set = {                                                                 \
		.isa = #set,                                                                                                   \
		.absmax_bits = absmax_bits_##set,                                                                              \
		.delta_absmax_bits = delta_absmax_bits_##set,                                                                  \
		.quantize = quantize_##set,                                                                                    \
		.absmax_int8 = absmax_int8_##set,                                                                              \
		.dequantize = dequantize_##set,                                                                                \
		.dequantize_add = dequantize_add_##set,                                                                        \
		.scaled_add = scaled_add_##set,                                                                                \
		.squares_int8 = squares_int8_##set,                                                                            \
		.dot_int8 = dot_int8_##set,                                                                                    \
		.dot = dot_##set,                                                                                              \
	};

KERNEL_SET(portable, )
#ifdef __x86_64__
KERNEL_SET(avx2, RV_TARGET_AVX2)
KERNEL_SET(avx512, RV_TARGET_AVX512)
#endif

const struct codec_kernels *codec_kernels_at(int i) {
	const struct codec_kernels *have[4] = {0};
	int n = 0;
#ifdef __x86_64__
	if (RV_HAS_AVX512())
		have[n++] = &codec_kernels_avx512;
	if (__builtin_cpu_supports("avx2"))
		have[n++] = &codec_kernels_avx2;
#endif
	have[n++] = &codec_kernels_portable;
	return i < n ? have[i] : NULL;
}

const struct codec_kernels *codec_kernels_best(void) {
	return codec_kernels_at(0);
}
