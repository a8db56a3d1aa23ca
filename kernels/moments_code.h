/* moments_code.h: the 8-bit code of one of Adam's moments, in integers alone, so that processors
 * and GPUs have the same bits.
 *
 * A block of MOMENTS_BLOCK moments has a `top`: its largest magnitude, as the bits of a float. Bits
 * of positive floats grow like their logarithm, linear within an octave. Codes count down from the
 * top in steps of MOMENTS_STEP = 3/32 of an octave, so neighbours differ by 4.7 to 9.4 %:
 *
 *   first moment   bit 7: the sign; bits 0..6: 127 is the top, 1 the top / 2^11.8, 0 zero
 *   second moment  255 is the top, 1 the top / 2^23.8, 0 zero: as far below as the first squared
 *
 * Between two codes one is drawn, the nearer one more often, so that the mean of many roundings is
 * the moment itself: rounded to the nearest code, a moment that changes by less than half a step
 * would never change (beta2 = 0.999 shrinks by a 70th of one). A first moment below the last code
 * is lost; a second moment stays at the last code, as an update divided by too little is the one
 * thing that must not happen. */
#ifndef RV_KERNELS_MOMENTS_CODE_H
#define RV_KERNELS_MOMENTS_CODE_H

#include <stdint.h>

#ifndef MOMENTS_INLINE /* a GPU's kernels define it as their compiler wants it */
#define MOMENTS_INLINE static inline
#endif

enum {
	MOMENTS_BLOCK = 256,
	MOMENTS_STEP_SHIFT = 18,
	MOMENTS_STEP = 3 << MOMENTS_STEP_SHIFT,
	MOMENTS_DRAW_UNIT = MOMENTS_STEP >> 16, /* bits of a float for each of the 65536 values of a draw */
	MOMENTS_FIRST_CODES = 127,
	MOMENTS_SECOND_CODES = 255,
	MOMENTS_SIGN = 0x80,
};

/* Returns the seed of a block's draws: of the update (its step) and the block's place among all
 * parameters. */
MOMENTS_INLINE uint32_t moments_seed(uint64_t step, uint64_t block) {
	uint64_t x = step * UINT64_C(0x9e3779b97f4a7c15) + block * UINT64_C(0xd1342543de82ef95) + 1;
	x = (x ^ x >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 29) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

/* Returns the draws of moment i of the block: the first moment's in the lower half. */
MOMENTS_INLINE uint32_t moments_draws(uint32_t seed, uint32_t i) {
	uint32_t h = (seed + i * UINT32_C(0x9e3779b9)) * UINT32_C(0x2c1b3c6d);
	h = (h ^ h >> 15) * UINT32_C(0x297a2d39);
	return h ^ h >> 16;
}

/* Returns how many codes below the top a magnitude of these bits is. x / 3 of a small x. */
MOMENTS_INLINE uint32_t moments_below(uint32_t bits, uint32_t top, uint32_t draw) {
	const uint32_t x = (top - bits + draw * (uint32_t)MOMENTS_DRAW_UNIT) >> MOMENTS_STEP_SHIFT;
	return x * UINT32_C(43691) >> 17;
}

/* Return the code of a moment of these bits, at most `top` in magnitude; draw: 0..65535. */
MOMENTS_INLINE uint8_t moments_encode_first(uint32_t bits, uint32_t top, uint32_t draw) {
	const uint32_t magnitude = bits & 0x7fffffffu, below = moments_below(magnitude, top, draw);
	const uint32_t sign = bits >> 24 & MOMENTS_SIGN;
	return magnitude == 0 || below >= MOMENTS_FIRST_CODES ? 0 : (uint8_t)(sign | (MOMENTS_FIRST_CODES - below));
}

MOMENTS_INLINE uint8_t moments_encode_second(uint32_t bits, uint32_t top, uint32_t draw) {
	const uint32_t below = moments_below(bits, top, draw);
	if (bits == 0)
		return 0;
	return below >= MOMENTS_SECOND_CODES ? 1 : (uint8_t)(MOMENTS_SECOND_CODES - below);
}

/* Returns the bits of the magnitude `below` codes under the top; 0 where no float is that small. */
MOMENTS_INLINE uint32_t moments_magnitude(uint32_t below, uint32_t top) {
	const uint32_t under = below * (uint32_t)MOMENTS_STEP;
	return top > under ? top - under : 0;
}

/* Return the bits of the moment that a code means. */
MOMENTS_INLINE uint32_t moments_decode_first(uint8_t code, uint32_t top) {
	const uint32_t magnitude = code & 0x7fu, sign = (uint32_t)(code & MOMENTS_SIGN) << 24;
	return magnitude == 0 ? 0 : sign | moments_magnitude(MOMENTS_FIRST_CODES - magnitude, top);
}

MOMENTS_INLINE uint32_t moments_decode_second(uint8_t code, uint32_t top) {
	return code == 0 ? 0 : moments_magnitude(MOMENTS_SECOND_CODES - (uint32_t)code, top);
}

#endif
