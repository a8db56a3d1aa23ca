/* weights_format.c: bf16 is the upper half of an fp32; fp16 (IEEE 754 binary16) has 5 exponent bits
 * and 10 of fraction. */
#include "train/files/weights_format.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie in the file");

enum {
	F32_INF = 0x7f800000,
	F16_INF = 0x7c00,
	F16_FRACTION_BITS = 10,
	DROPPED_BITS = 23 - F16_FRACTION_BITS, /* bits of an fp32's fraction, in a normal fp16 */
	F16_MIN_NORMAL_EXPONENT = 113,         /* fp32's biased exponent of 2^-14 */
};
#define F16_ULP_OF_SUBNORMALS 0x1p-24f

static const struct {
	const char *name;
	size_t bytes;
} formats[WEIGHTS_FORMATS] = {{"F32", 4}, {"BF16", 2}, {"F16", 2}};

const char *weights_format_name(enum weights_format f) {
	return formats[f].name;
}

bool weights_format_find(const char *name, enum weights_format *out) {
	for (int f = 0; f < WEIGHTS_FORMATS; f++) {
		if (strcmp(formats[f].name, name) != 0)
			continue;
		*out = (enum weights_format)f;
		return true;
	}
	return false;
}

size_t weights_format_bytes(enum weights_format f) {
	return formats[f].bytes;
}

static uint32_t bits_of(float x) {
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static float float_of(uint32_t u) {
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static float half_to_float(uint16_t h) {
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
	if (magnitude >= F16_INF)
		return float_of(sign | F32_INF | (magnitude & 0x3ff) << DROPPED_BITS);
	if (magnitude >> F16_FRACTION_BITS == 0)
		return float_of(sign | bits_of((float)magnitude * F16_ULP_OF_SUBNORMALS));
	return float_of(sign | ((magnitude << DROPPED_BITS) + ((uint32_t)(F16_MIN_NORMAL_EXPONENT - 1) << 23)));
}

/* Returns u without its last `bits`, rounded to nearest, ties to even. */
static uint32_t round_shift(uint32_t u, int bits) {
	return (u + (1u << (bits - 1)) - 1 + (u >> bits & 1)) >> bits;
}

/* Returns x as fp16, infinite if it is too large. */
static uint16_t half_of(float x) {
	uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
	if (magnitude >> 23 < F16_MIN_NORMAL_EXPONENT)
		return (uint16_t)(sign | (uint32_t)rintf(fabsf(x) / F16_ULP_OF_SUBNORMALS));
	uint32_t half =
		round_shift(magnitude, DROPPED_BITS) - ((uint32_t)(F16_MIN_NORMAL_EXPONENT - 1) << F16_FRACTION_BITS);
	return (uint16_t)(sign | (half < F16_INF ? half : F16_INF));
}

void weights_decode(enum weights_format f, const void *in, size_t n, float *out) {
	if (f == WEIGHTS_F32) {
		memcpy(out, in, n * sizeof *out);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint16_t v;
		memcpy(&v, (const char *)in + i * sizeof v, sizeof v);
		out[i] = f == WEIGHTS_BF16 ? float_of((uint32_t)v << 16) : half_to_float(v);
	}
}

size_t weights_encode(enum weights_format f, const float *in, size_t n, void *out) {
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(in[i]))
			return i;
		if (f == WEIGHTS_F32) {
			((float *)out)[i] = in[i];
			continue;
		}
		uint16_t v = f == WEIGHTS_BF16 ? (uint16_t)round_shift(bits_of(in[i]), 16) : half_of(in[i]);
		if ((v & 0x7fff) >= (f == WEIGHTS_BF16 ? F32_INF >> 16 : F16_INF))
			return i;
		((uint16_t *)out)[i] = v;
	}
	return n;
}
