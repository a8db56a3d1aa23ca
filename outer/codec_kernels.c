/* codec_kernels.c: which instruction sets this processor has, and the portable loops that say what each kernel means.
 */
#include "outer/codec_kernels.h"

#include "outer/float_bits.h"

/* Adding 1.5 * 2^23 leaves an fp32 of magnitude below 2^22 rounded to an integer (nearest even) in the low bits. */
#define ROUNDING_MAGIC 12582912.0f

static uint32_t absmax_bits(const float *x, size_t n) {
	uint32_t most = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t m = float_magnitude(x[i]);
		most = m > most ? m : most;
	}
	return most;
}

static uint32_t delta_absmax_bits(const float *a, const float *b, float *d, size_t n) {
	for (size_t i = 0; i < n; i++)
		d[i] = a[i] - b[i];
	return absmax_bits(d, n);
}

static void quantize(const float *x, float inverse, int8_t *q, size_t n) {
	for (size_t i = 0; i < n; i++) {
		float shifted = x[i] * inverse + ROUNDING_MAGIC;
		q[i] = (int8_t)(int32_t)(float_bits(shifted) - float_bits(ROUNDING_MAGIC));
	}
}

static unsigned absmax_int8(const int8_t *q, size_t n) {
	int most = 0;
	for (size_t i = 0; i < n; i++) {
		int m = q[i] < 0 ? -q[i] : q[i];
		most = m > most ? m : most;
	}
	return (unsigned)most;
}

static void dequantize(const int8_t *q, float scale, float *x, size_t n) {
	for (size_t i = 0; i < n; i++)
		x[i] = (float)q[i] * scale;
}

static void dequantize_add(const int8_t *q, float scale, float weight, float *acc, size_t n) {
	for (size_t i = 0; i < n; i++)
		acc[i] = acc[i] + weight * ((float)q[i] * scale);
}

static void scaled_add(const float *x, float weight, float *acc, size_t n) {
	for (size_t i = 0; i < n; i++)
		acc[i] = acc[i] + weight * x[i];
}

static uint32_t squares_int8(const int8_t *q, size_t n) {
	uint32_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (uint32_t)(q[i] * q[i]);
	return sum;
}

double codec_kernels_fold(double lanes[CODEC_DOT_LANES]) {
	for (int half = CODEC_DOT_LANES / 2; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] = lanes[l] + lanes[l + half];
	return lanes[0];
}

static double dot_int8(const int8_t *q, const float *y, size_t n) {
	float lanes[CODEC_DOT_LANES] = {0};
	double sums[CODEC_DOT_LANES];
	for (size_t i = 0; i < n; i++)
		lanes[i % CODEC_DOT_LANES] = lanes[i % CODEC_DOT_LANES] + (float)q[i] * y[i];
	for (int l = 0; l < CODEC_DOT_LANES; l++)
		sums[l] = (double)lanes[l];
	return codec_kernels_fold(sums);
}

static double dot(const float *x, const float *y, size_t n) {
	double lanes[CODEC_DOT_LANES] = {0};
	for (size_t i = 0; i < n; i++)
		lanes[i % CODEC_DOT_LANES] += (double)x[i] * (double)y[i];
	return codec_kernels_fold(lanes);
}

const struct codec_kernels codec_kernels_portable = {
	.isa = "portable",
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

const struct codec_kernels *codec_kernels_at(int i) {
	const struct codec_kernels *have[4] = {0};
	int n = 0;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
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
