/* codec_packed.c: what the codecs of two and four bits share: blocks, packing, rounding at random, and what decode
 * refuses. */
#include "outer/codec_packed.h"
#include "outer/codec_kernels.h"

enum { CODES_PER_BYTE_MAX = 4 };

/* What follows from the bits of a code. */
struct packing {
	unsigned bits, sign, magnitude, per_byte;
};

static struct packing packing_of(const struct packed_format *f) {
	const unsigned sign = 1u << (f->bits - 1);
	return (struct packing){.bits = f->bits, .sign = sign, .magnitude = sign - 1, .per_byte = 8 / f->bits};
}

static size_t blocks_of(size_t n) {
	return (n + PACKED_BLOCK - 1) / PACKED_BLOCK;
}

static size_t block_len(size_t n, size_t b) {
	size_t left = n - b * PACKED_BLOCK;
	return left < PACKED_BLOCK ? left : PACKED_BLOCK;
}

/* Where the codes of block b lie in an encoding of n values. */
static size_t codes_at(const struct packed_format *f, size_t n, size_t b) {
	return blocks_of(n) * sizeof(float) + b * (PACKED_BLOCK * f->bits / 8);
}

size_t packed_encoded_bytes(const struct packed_format *f, size_t n) {
	return blocks_of(n) * sizeof(float) + (n * f->bits + 7) / 8;
}

/* code[i] = a neighbour of |x[i]| / scale, the one above with the probability that makes the mean exact. What is as large as
 * the block's largest keeps the largest code: a block is refused without one. */
static void random_magnitudes(const struct packed_format *f, const float *x, float absmax, float scale,
							  const float *uniform, uint8_t *code, size_t n) {
	const unsigned top = packing_of(f).magnitude;
	for (size_t i = 0; i < n; i++) {
		const float magnitude = float_of_bits(float_magnitude(x[i]));
		const float r = (float)((double)magnitude / (double)scale); /* exact where the value is one of the format */
		unsigned below = 0;
		while (below < top && f->value[below + 1] <= r)
			below++;
		const bool up = below < top && uniform[i] * (f->value[below + 1] - f->value[below]) < r - f->value[below];
		code[i] = (uint8_t)(magnitude == absmax ? top : below + up);
	}
}

static void choose_codes(const struct packed_format *f, const float *x, float absmax, float scale,
						 const struct codec_noise *noise, size_t offset, uint8_t *code, size_t n) {
	float uniform[PACKED_BLOCK];
	if (!noise) {
		f->magnitudes(x, 1.0f / scale, code, n);
		return;
	}
	codec_noise_fill(noise, offset, uniform, n);
	random_magnitudes(f, x, absmax, scale, uniform, code, n);
}

/* Encodes block b of n values, x (its length) with the given maximum magnitude. */
static void encode_block(const struct packed_format *f, const float *x, uint32_t absmax_bits, size_t n, size_t b,
						 const struct codec_noise *noise, uint8_t *out) {
	const struct packing p = packing_of(f);
	const size_t len = block_len(n, b);
	const float absmax = float_of_bits(absmax_bits), scale = block_scale(&f->scales, absmax);
	uint8_t code[PACKED_BLOCK + CODES_PER_BYTE_MAX] = {0}; /* some more: the last byte is filled up with 0 */
	memcpy(out + b * sizeof scale, &scale, sizeof scale);
	if (scale > 0) {
		choose_codes(f, x, absmax, scale, noise, b * PACKED_BLOCK, code, len);
		for (size_t i = 0; i < len; i++)
			code[i] = (uint8_t)(code[i] | (code[i] > 0 && x[i] < 0 ? p.sign : 0));
	}
	uint8_t *packed = out + codes_at(f, n, b);
	for (size_t i = 0; i < len; i += p.per_byte) {
		unsigned byte = 0;
		for (unsigned j = 0; j < p.per_byte; j++)
			byte |= (unsigned)code[i + j] << (j * p.bits);
		packed[i / p.per_byte] = (uint8_t)byte;
	}
}

enum rv_err packed_encode_random(const struct packed_format *f, const float *x, size_t n,
								 const struct codec_noise *noise, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t b = 0; b < blocks_of(n); b++) {
		const float *xb = x + b * PACKED_BLOCK;
		uint32_t most = k->absmax_bits(xb, block_len(n, b));
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&f->scales, xb, block_len(n, b), b * PACKED_BLOCK, et);
		encode_block(f, xb, most, n, b, noise, out);
	}
	return RV_OK;
}

enum rv_err packed_encode(const struct packed_format *f, const float *x, size_t n, uint8_t *out,
						  struct rv_errtext *et) {
	return packed_encode_random(f, x, n, NULL, out, et);
}

enum rv_err packed_encode_delta(const struct packed_format *f, const float *x, const float *y, size_t n, uint8_t *out,
								struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[PACKED_BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		size_t at = b * PACKED_BLOCK, len = block_len(n, b);
		uint32_t most = k->delta_absmax_bits(x + at, y + at, delta, len);
		if (most >= FLOAT_INF_BITS)
			return block_not_finite(&f->scales, delta, len, at, et);
		encode_block(f, delta, most, n, b, NULL, out);
	}
	return RV_OK;
}

/* Unpacks the codes of block b (whole bytes of them), and refuses a code that is none. *most: the largest magnitude. */
static enum rv_err unpack(const struct packed_format *f, const uint8_t *packed, size_t len, size_t b, uint8_t *code,
						  unsigned *most, struct rv_errtext *et) {
	const struct packing p = packing_of(f);
	const size_t slots = (len + p.per_byte - 1) / p.per_byte * p.per_byte;
	*most = 0;
	for (size_t i = 0; i < slots; i++) {
		const unsigned c = packed[i / p.per_byte] >> (i % p.per_byte * p.bits) & (p.sign | p.magnitude);
		if (c == p.sign)
			return rv_fail(et, RV_E_CORRUPT, "%s block %zu: value %zu is a negative zero", f->scales.codec, b, i);
		if (i >= len && c != 0)
			return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %u in the unused bits of the last byte", f->scales.codec, b,
						   c);
		*most = (c & p.magnitude) > *most ? c & p.magnitude : *most;
		code[i] = (uint8_t)c;
	}
	return RV_OK;
}

/* Unpacks block b into x (its length), and refuses what encode_block cannot have written. */
static enum rv_err decode_block(const struct packed_format *f, const uint8_t *in, size_t n, size_t b, float *x,
								struct rv_errtext *et) {
	const struct packing p = packing_of(f);
	const size_t len = block_len(n, b);
	const char *name = f->scales.codec;
	uint8_t code[PACKED_BLOCK + CODES_PER_BYTE_MAX];
	float scale;
	unsigned most;
	memcpy(&scale, in + b * sizeof scale, sizeof scale);
	RV_TRY(unpack(f, in + codes_at(f, n, b), len, b, code, &most, et));
	if (float_bits(scale) != 0 && !block_scale_valid(&f->scales, scale))
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %a is not a scale", name, b, (double)scale);
	if (float_bits(scale) == 0 && most != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: scale 0 but a value of magnitude %u", name, b, most);
	if (float_bits(scale) != 0 && most != p.magnitude)
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: largest magnitude %u, must be %u", name, b, most, p.magnitude);
	for (size_t i = 0; i < len; i++) {
		const float magnitude = f->value[code[i] & p.magnitude];
		x[i] = (code[i] & p.sign ? -magnitude : magnitude) * scale;
	}
	return RV_OK;
}

enum rv_err packed_decode(const struct packed_format *f, const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	for (size_t b = 0; b < blocks_of(n); b++)
		RV_TRY(decode_block(f, in, n, b, x + b * PACKED_BLOCK, et));
	return RV_OK;
}

enum rv_err packed_decode_add(const struct packed_format *f, const uint8_t *in, size_t n, float weight, float *acc,
							  struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float values[PACKED_BLOCK];
	for (size_t b = 0; b < blocks_of(n); b++) {
		RV_TRY(decode_block(f, in, n, b, values, et));
		k->scaled_add(values, weight, acc + b * PACKED_BLOCK, block_len(n, b));
	}
	return RV_OK;
}
