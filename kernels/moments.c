/* moments.c: blocks of 8-bit moments, value by value. */
#include "kernels/moments.h"

#include "base/assert.h"

#include <string.h>

static uint32_t bits_of(float x) {
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static float float_of(uint32_t bits) {
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static size_t block_length(size_t n, size_t block) {
	const size_t at = block * MOMENTS_BLOCK;
	RV_ASSERT(at < n);
	return n - at < MOMENTS_BLOCK ? n - at : MOMENTS_BLOCK;
}

static uint32_t top_of(const float *values, size_t n) {
	uint32_t top = 0;
	for (size_t i = 0; i < n; i++) {
		const uint32_t magnitude = bits_of(values[i]) & 0x7fffffffu;
		top = magnitude > top ? magnitude : top;
	}
	return top;
}

size_t moments_decode_block(enum moment which, const void *vector, size_t n, size_t block, float out[MOMENTS_BLOCK]) {
	const uint8_t *codes = (const uint8_t *)vector + block * MOMENTS_BLOCK;
	const size_t length = block_length(n, block);
	float value;
	memcpy(&value, (const char *)vector + moments_code_bytes(n) + block * sizeof value, sizeof value);
	const uint32_t top = bits_of(value);
	for (size_t i = 0; i < length; i++)
		out[i] = float_of(which == MOMENT_FIRST ? moments_decode_first(codes[i], top)
												: moments_decode_second(codes[i], top));
	return length;
}

void moments_encode_block(enum moment which, void *vector, size_t n, size_t block, const float in[MOMENTS_BLOCK],
						  uint32_t seed) {
	uint8_t *codes = (uint8_t *)vector + block * MOMENTS_BLOCK;
	const size_t length = block_length(n, block);
	const uint32_t top = top_of(in, length);
	const float value = float_of(top);
	for (size_t i = 0; i < length; i++) {
		const uint32_t draws = moments_draws(seed, (uint32_t)i), bits = bits_of(in[i]);
		codes[i] = which == MOMENT_FIRST ? moments_encode_first(bits, top, draws & 0xffff)
										 : moments_encode_second(bits, top, draws >> 16);
	}
	memcpy((char *)vector + moments_code_bytes(n) + block * sizeof value, &value, sizeof value);
}
