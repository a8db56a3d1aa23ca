/* codec_nibble.c: what the codecs of four bits share: blocks, packing, and what decode refuses. */
#include "outer/codec_nibble.h"

#include "outer/codec_kernels.h"

enum { MAGNITUDE = 7, SIGN = 8 };

static size_t blocks_of(size_t n) {
	return (n + NIBBLE_BLOCK - 1) / NIBBLE_BLOCK;
}

static size_t block_len(size_t n, size_t b) {
	size_t left = n - b * NIBBLE_BLOCK;
	return left < NIBBLE_BLOCK ? left : NIBBLE_BLOCK;
}

/* Where the nibbles of block b lie in an encoding of n values. */
static size_t nibbles_at(size_t n, size_t b) {
	return blocks_of(n) * sizeof(float) + b * (NIBBLE_BLOCK / 2);
}

size_t nibble_encoded_bytes(size_t n) {
	return blocks_of(n) * sizeof(float) + (n + 1) / 2;
}

/* Encodes block b of n values, x (its length) with the given maximum magnitude. */
static void encode_block(const struct nibble_format *f, const float *x, uint32_t absmax_bits, size_t n, size_t b,
						 uint8_t *out) {
	const size_t len = block_len(n, b);
	const float scale = block_scale(&f->scales, float_of_bits(absmax_bits));
	uint8_t code[NIBBLE_BLOCK + 1] = {0}; /* one more: an odd length is filled up with 0 */
	memcpy(out + b * sizeof scale, &scale, sizeof scale);
	if (scale > 0) {
		f->magnitudes(x, 1.0f / scale, code, len);
		for (size_t i = 0; i < len; i++)
			code[i] |= code[i] > 0 && x[i] < 0 ? SIGN : 0;
	}
	uint8_t *packed = out + nibbles_at(n, b);
	for (size_t i = 0; i < len; i += 2)
		packed[i / 2] = (uint8_t)(code[i] | code[i + 1] << 4);
}

enum rv_err nibble_encode(const struct nibble_format *f, const float *x, size_t n, uint8_t *out,
						  struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t b = 0; b < blocks_of(n); b++) {
		const float *xb = x + b * NIBBLE_BLOCK;
		uint32_t most = k->absmax_bits(xb, block_len(n, b));
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&f->scales, xb, block_len(n, b), b * NIBBLE_BLOCK, et);
		encode_block(f, xb, most, n, b, out);
	}
	return RV_OK;
}

enum rv_err nibble_encode_delta(const struct nibble_format *f, const float *x, const float *y, size_t n, uint8_t *out,
								struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[NIBBLE_BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		size_t at = b * NIBBLE_BLOCK, len = block_len(n, b);
		uint32_t most = k->delta_absmax_bits(x + at, y + at, delta, len);
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&f->scales, delta, len, at, et);
		encode_block(f, delta, most, n, b, out);
	}
	return RV_OK;
}

/* Unpacks block b into x (its length), and refuses what encode_block cannot have written. */
static enum rv_err decode_block(const struct nibble_format *f, const uint8_t *in, size_t n, size_t b, float *x,
								struct rv_errtext *et) {
	const size_t len = block_len(n, b);
	const uint8_t *packed = in + nibbles_at(n, b);
	const char *name = f->scales.codec;
	float scale;
	memcpy(&scale, in + b * sizeof scale, sizeof scale);
	unsigned most = 0;
	for (size_t i = 0; i < len + len % 2; i++) {
		const unsigned code = packed[i / 2] >> (i % 2 ? 4 : 0) & 15, magnitude = code & MAGNITUDE;
		if (code == SIGN)
			return rv_fail(et, RV_E_CORRUPT, "%s block %zu: value %zu is a negative zero", name, b, i);
		if (i == len && code != 0)
			return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %u in the unused half of the last byte", name, b, code);
		most = magnitude > most ? magnitude : most;
		if (i < len)
			x[i] = (code & SIGN ? -f->value[magnitude] : f->value[magnitude]) * scale;
	}
	if (float_bits(scale) == 0)
		return most == 0
				   ? RV_OK
				   : rv_fail(et, RV_E_CORRUPT, "%s block %zu: scale 0 but a value of magnitude %u", name, b, most);
	if (!block_scale_valid(&f->scales, scale))
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %a is not a scale", name, b, (double)scale);
	if (most != MAGNITUDE)
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: largest magnitude %u, must be %d", name, b, most, MAGNITUDE);
	return RV_OK;
}

enum rv_err nibble_decode(const struct nibble_format *f, const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	for (size_t b = 0; b < blocks_of(n); b++)
		RV_TRY(decode_block(f, in, n, b, x + b * NIBBLE_BLOCK, et));
	return RV_OK;
}

enum rv_err nibble_decode_add(const struct nibble_format *f, const uint8_t *in, size_t n, float weight, float *acc,
							  struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float values[NIBBLE_BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		RV_TRY(decode_block(f, in, n, b, values, et));
		k->scaled_add(values, weight, acc + b * NIBBLE_BLOCK, block_len(n, b));
	}
	return RV_OK;
}
