/* codec_packed.c: what the codecs of two and four bits share: blocks, rounding, packing, and what decode refuses. Codes
 * of a block are one byte each on the way; a short last block is filled up with zeros. */
#include "outer/codec_packed.h"
#include "outer/codec_kernels.h"
#include "outer/elementwise.h"

enum { CODES_PER_WORD = 8 }; /* bytes, each a code */

/* What follows from the bits of a code. */
struct packing {
	unsigned bits, sign, magnitude;
};

static struct packing packing_of(const struct packed_format *f) {
	const unsigned sign = 1u << (f->bits - 1);
	return (struct packing){.bits = f->bits, .sign = sign, .magnitude = sign - 1};
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

/* ---- codes ---- */

typedef int32_t ivec __attribute__((vector_size(VEC_LANES * 4)));
typedef double dvec __attribute__((vector_size(VEC_LANES * 8)));
typedef uint8_t bvec __attribute__((vector_size(VEC_LANES), may_alias, aligned(1)));

/* Pointers: vectors as arguments have no stable ABI. */
static inline __attribute__((always_inline)) void store_codes(const ivec *magnitude, const vec *x, unsigned sign,
															  uint8_t *code) {
	const ivec minus = (*x < 0) & (*magnitude > 0) & (int32_t)sign;
	*(bvec *)code = __builtin_convertvector(*magnitude | minus, bvec);
}

/* code[i] = the magnitude nearest to |x[i]| / scale, and x's sign; PACKED_BLOCK each. */
RV_ELEMENTWISE_BODY nearest_codes_body(const struct packed_format *f, const float *x, float inverse, uint8_t *code) {
	const struct packing p = packing_of(f);
	for (size_t i = 0; i < PACKED_BLOCK; i += VEC_LANES) {
		const vec v = VEC_AT(x + i), r = (vec)((ivec)v & (int32_t)FLOAT_MAGNITUDE) * inverse;
		ivec magnitude = {0};
		for (unsigned k = 0; k < p.magnitude; k++)
			magnitude -= r >= f->from[k]; /* true is -1 */
		store_codes(&magnitude, &v, p.sign, code + i);
	}
}

RV_ELEMENTWISE(nearest_codes, (const struct packed_format *f, const float *x, float inverse, uint8_t *code),
			   (f, x, inverse, code))

/* A neighbour of |x[i]| / scale, the one above with the probability that makes the mean exact. What is as large as the
 * block's largest keeps the largest code: a block is refused without one. The quotient in double is exact where it is
 * one of the format's values. */
RV_ELEMENTWISE_BODY random_codes_body(const struct packed_format *f, const float *x, float absmax, float scale,
									  const float *uniform, uint8_t *code) {
	const struct packing p = packing_of(f);
	const int32_t top = (int32_t)p.magnitude;
	for (size_t i = 0; i < PACKED_BLOCK; i += VEC_LANES) {
		const vec v = VEC_AT(x + i), m = (vec)((ivec)v & (int32_t)FLOAT_MAGNITUDE);
		const vec r = __builtin_convertvector(__builtin_convertvector(m, dvec) / (double)scale, vec);
		vec low = {0}, step = low + f->value[1];
		ivec magnitude = {0};
		for (unsigned k = 1; k <= p.magnitude; k++) {
			const vec value = low * 0 + f->value[k],
					  next = low * 0 + (k < p.magnitude ? f->value[k + 1] - f->value[k] : 0);
			const ivec reached = r >= value;
			magnitude -= reached;
			low = (vec)(((ivec)value & reached) | ((ivec)low & ~reached));
			step = (vec)(((ivec)next & reached) | ((ivec)step & ~reached));
		}
		magnitude -= VEC_AT(uniform + i) * step < r - low;
		const ivec largest = (magnitude > top) | (m == absmax);
		magnitude = (largest & top) | (~largest & magnitude);
		store_codes(&magnitude, &v, p.sign, code + i);
	}
}

RV_ELEMENTWISE(random_codes,
			   (const struct packed_format *f, const float *x, float absmax, float scale, const float *uniform,
				uint8_t *code),
			   (f, x, absmax, scale, uniform, code))

/* ---- packing: eight codes, a byte each, to as many bits and back ---- */

static uint64_t pack_word(uint64_t w, unsigned bits) {
	w = (w | w >> (8 - bits)) & (bits == 4 ? UINT64_C(0x00ff00ff00ff00ff) : UINT64_C(0x000f000f000f000f));
	w = (w | w >> 2 * (8 - bits)) & (bits == 4 ? UINT64_C(0x0000ffff0000ffff) : UINT64_C(0x000000ff000000ff));
	return (w | w >> 4 * (8 - bits)) & (bits == 4 ? UINT64_C(0xffffffff) : UINT64_C(0xffff));
}

static uint64_t unpack_word(uint64_t w, unsigned bits) {
	w = (w | w << 4 * (8 - bits)) & (bits == 4 ? UINT64_C(0x0000ffff0000ffff) : UINT64_C(0x000000ff000000ff));
	w = (w | w << 2 * (8 - bits)) & (bits == 4 ? UINT64_C(0x00ff00ff00ff00ff) : UINT64_C(0x000f000f000f000f));
	return (w | w << (8 - bits)) & (bits == 4 ? UINT64_C(0x0f0f0f0f0f0f0f0f) : UINT64_C(0x0303030303030303));
}

static size_t packed_bytes(size_t n, unsigned bits) {
	return (n * bits + 7) / 8;
}

/* The codes of a block (PACKED_BLOCK) as bytes; the first `len` of them are stored. */
static void pack(const uint8_t *code, size_t len, unsigned bits, uint8_t *out) {
	uint8_t whole[PACKED_BLOCK * 4 / 8 + sizeof(uint64_t)];
	for (size_t i = 0; i < PACKED_BLOCK; i += CODES_PER_WORD) {
		uint64_t w;
		memcpy(&w, code + i, sizeof w);
		w = pack_word(w, bits);
		memcpy(whole + i * bits / 8, &w, sizeof w); /* what is beyond is written over by the next */
	}
	memcpy(out, whole, packed_bytes(len, bits));
}

static void unpack(const uint8_t *in, size_t len, unsigned bits, uint8_t *code) {
	uint8_t whole[PACKED_BLOCK * 4 / 8 + sizeof(uint64_t)] = {0};
	memcpy(whole, in, packed_bytes(len, bits));
	for (size_t i = 0; i < PACKED_BLOCK; i += CODES_PER_WORD) {
		uint64_t w;
		memcpy(&w, whole + i * bits / 8, sizeof w);
		w = unpack_word(w & (bits == 4 ? UINT64_C(0xffffffff) : UINT64_C(0xffff)), bits);
		memcpy(code + i, &w, sizeof w);
	}
}

/* ---- blocks ---- */

/* Encodes block b of n values, x (its length) with the given maximum magnitude. */
static void encode_block(const struct packed_format *f, const float *x, uint32_t absmax_bits, size_t n, size_t b,
						 const struct codec_noise *noise, uint8_t *out) {
	const size_t len = block_len(n, b);
	const float absmax = float_of_bits(absmax_bits), scale = block_scale(&f->scales, absmax);
	float filled[PACKED_BLOCK] = {0}, uniform[PACKED_BLOCK] = {0};
	uint8_t code[PACKED_BLOCK] = {0};
	memcpy(out + b * sizeof scale, &scale, sizeof scale);
	if (len < PACKED_BLOCK)
		x = memcpy(filled, x, len * sizeof *x);
	if (noise)
		codec_noise_fill(noise, b * PACKED_BLOCK, uniform, len);
	if (scale > 0 && noise)
		random_codes(f, x, absmax, scale, uniform, code);
	else if (scale > 0)
		nearest_codes(f, x, 1.0f / scale, code);
	pack(code, len, f->bits, out + codes_at(f, n, b));
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

/* Refuses codes of block b that are none, with the first of them. *most: the largest magnitude. */
static enum rv_err check_codes(const struct packed_format *f, const uint8_t *code, size_t len, size_t b, unsigned *most,
							   struct rv_errtext *et) {
	const struct packing p = packing_of(f);
	const uint8_t sign = (uint8_t)p.sign, mask = (uint8_t)p.magnitude;
	uint8_t largest = 0, negative_zero = 0;
	for (size_t i = 0; i < PACKED_BLOCK; i++) {
		const uint8_t magnitude = code[i] & mask;
		largest = magnitude > largest ? magnitude : largest;
		negative_zero |= code[i] == sign;
	}
	for (size_t i = len; i < PACKED_BLOCK; i++)
		if (code[i] != 0)
			return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %u in the unused bits of the last byte", f->scales.codec, b,
						   code[i]);
	for (size_t i = 0; negative_zero && i < len; i++)
		if (code[i] == sign)
			return rv_fail(et, RV_E_CORRUPT, "%s block %zu: value %zu is a negative zero", f->scales.codec, b, i);
	*most = largest;
	return RV_OK;
}

/* Unpacks block b into x (its length), and refuses what encode_block cannot have written. */
static enum rv_err decode_block(const struct packed_format *f, const uint8_t *in, size_t n, size_t b, float *x,
								struct rv_errtext *et) {
	const struct packing p = packing_of(f);
	const size_t len = block_len(n, b);
	uint8_t code[PACKED_BLOCK];
	float scale, value[2 * PACKED_MAGNITUDES_MAX];
	unsigned most = 0;
	memcpy(&scale, in + b * sizeof scale, sizeof scale);
	unpack(in + codes_at(f, n, b), len, f->bits, code);
	RV_TRY(check_codes(f, code, len, b, &most, et));
	RV_TRY(block_check(&f->scales, b, scale, most, p.magnitude, et));
	for (unsigned m = 0; m <= p.magnitude; m++) {
		value[m] = f->value[m] * scale;
		value[p.sign | m] = -value[m];
	}
	for (size_t i = 0; i < len; i++)
		x[i] = value[code[i]];
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
