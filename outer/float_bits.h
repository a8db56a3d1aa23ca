/* float_bits.h: fp32 values as bit patterns: there the order of magnitudes and the test for NaN and
 * infinity are integer comparisons, the same on every instruction set. Private to outer/. */
#ifndef RV_OUTER_FLOAT_BITS_H
#define RV_OUTER_FLOAT_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "encodings are little-endian and copied as they lie");

#define FLOAT_MAGNITUDE         0x7fffffffu /* all bits but the sign */
#define FLOAT_INF_BITS          0x7f800000u /* magnitudes from here on are infinite or NaN */
#define FLOAT_LEAST_NORMAL_BITS 0x00800000u

static inline uint32_t float_bits(float x) {
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float float_of_bits(uint32_t u) {
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static inline uint32_t float_magnitude(float x) {
	return float_bits(x) & FLOAT_MAGNITUDE;
}

static inline bool float_is_finite(float x) {
	return float_magnitude(x) < FLOAT_INF_BITS;
}

#endif
