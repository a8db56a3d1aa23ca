/* codec_block.c: the scales of blocks, and the loops over blocks; see codec_block.h. */
#include "outer/codec_block.h"

#include "outer/codec_kernels.h"

enum { BLOCK_MAX = 256, BYTE = 8 };

#define SCALE_MIN       0x1p-126f
#define SCALE_KEPT_BITS 0xffffff80u /* sign, exponent, 16 fraction bits: 17-bit significand */
#define SCALE_HALF_STEP 0x00000040u

/* ---- scales ---- */

float block_scale(float absmax, float code_max, float scale_max) {
	if (absmax < code_max * SCALE_MIN)
		return 0;
	const float scale = float_of_bits((float_bits(absmax / code_max) + SCALE_HALF_STEP) & SCALE_KEPT_BITS);
	return scale < scale_max ? scale : scale_max;
}

/* Returns true if block_scale could have returned `scale` and it is not 0; false for NaN. */
static bool block_scale_valid(float scale, float scale_max) {
	const bool in_range = scale >= SCALE_MIN && scale <= scale_max;
	return in_range && (float_bits(scale) & ~SCALE_KEPT_BITS) == 0;
}

enum rv_err block_not_finite(const struct codec *self, const float *x, size_t n, size_t offset, struct rv_errtext *et) {
	size_t i = 0;
	while (i + 1 < n && float_is_finite(x[i]))
		i++;
	return rv_fail(et, RV_E_RANGE, "%s encode: value %zu is %g; only finite numbers can be sent", self->name,
				   offset + i, (double)x[i]);
}

/* Refuses a block that no encoder can have written: an invalid scale, codes without a scale, or
 * codes whose largest magnitude `most` is not code_max. */
static enum rv_err check_scale(const struct codec *self, size_t b, float scale, unsigned most, struct rv_errtext *et) {
	const struct block_format *f = self->format;
	if (float_bits(scale) == 0)
		return most == 0 ? RV_OK
						 : rv_fail(et, RV_E_CORRUPT, "%s block %zu: scale 0 but a value of magnitude %u", self->name, b,
								   most);
	if (!block_scale_valid(scale, f->scale_max))
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: %a is not a scale", self->name, b, (double)scale);
	if (most != f->code_max)
		return rv_fail(et, RV_E_CORRUPT, "%s block %zu: largest magnitude %u, must be %u", self->name, b, most,
					   f->code_max);
	return RV_OK;
}

/* ---- places of blocks ---- */

static size_t codes_bytes(const struct codec *self, size_t n) {
	return (n * ((const struct block_format *)self->format)->code_bits + BYTE - 1) / BYTE;
}

size_t block_count(const struct codec *self, size_t n) {
	return (n + self->block - 1) / self->block;
}

size_t block_encoded_bytes(const struct codec *self, size_t n) {
	return block_count(self, n) * sizeof(float) + codes_bytes(self, n);
}

struct block_view block_view(const struct codec *self, const uint8_t *in, size_t n, size_t b) {
	struct block_view v = {.first = b * self->block, .len = n - b * self->block};
	v.len = v.len < self->block ? v.len : self->block;
	v.codes = in + block_count(self, n) * sizeof v.scale + codes_bytes(self, v.first);
	memcpy(&v.scale, in + b * sizeof v.scale, sizeof v.scale);
	return v;
}

/* ---- encoding ---- */

/* Encodes block b of n values from x (its length), whose largest magnitude is given. */
static enum rv_err encode_block(const struct codec *self, const float *x, uint32_t absmax_bits, size_t n, size_t b,
								uint8_t *out, struct rv_errtext *et) {
	const struct block_format *f = self->format;
	const struct block_view v = block_view(self, out, n, b);
	uint8_t *codes = out + (v.codes - out);
	if (absmax_bits >= FLOAT_INF_BITS)
		return block_not_finite(self, x, v.len, v.first, et);
	const float scale = block_scale(float_of_bits(absmax_bits), (float)f->code_max, f->scale_max);
	memcpy(out + b * sizeof scale, &scale, sizeof scale);
	if (scale > 0)
		f->quantize(x, 1.0f / scale, v.len, codes);
	else
		memset(codes, 0, codes_bytes(self, v.len));
	return RV_OK;
}

enum rv_err block_encode(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t at = 0; at < n; at += self->block) {
		const size_t len = n - at < self->block ? n - at : self->block;
		RV_TRY(encode_block(self, x + at, k->absmax_bits(x + at, len), n, at / self->block, out, et));
	}
	return RV_OK;
}

enum rv_err block_encode_delta(const struct codec *self, const float *x, const float *y, size_t n, uint8_t *out,
							   struct rv_errtext *et) {
	const struct codec_kernels *k = codec_kernels_best();
	float delta[BLOCK_MAX];
	for (size_t at = 0; at < n; at += self->block) {
		const size_t len = n - at < self->block ? n - at : self->block;
		const uint32_t most = k->delta_absmax_bits(x + at, y + at, delta, len);
		RV_TRY(encode_block(self, delta, most, n, at / self->block, out, et));
	}
	return RV_OK;
}

/* ---- decoding ---- */

/* Finds block b, and refuses one that encode_block cannot have written. */
static enum rv_err open_block(const struct codec *self, const uint8_t *in, size_t n, size_t b, struct block_view *v,
							  struct rv_errtext *et) {
	const struct block_format *f = self->format;
	unsigned most;
	*v = block_view(self, in, n, b);
	RV_TRY(f->largest(v->codes, v->len, b, &most, et));
	return check_scale(self, b, v->scale, most, et);
}

enum rv_err block_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	const struct block_format *f = self->format;
	struct block_view v;
	for (size_t b = 0; b < block_count(self, n); b++) {
		RV_TRY(open_block(self, in, n, b, &v, et));
		f->dequantize(v.codes, v.scale, v.len, x + v.first);
	}
	return RV_OK;
}

enum rv_err block_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							 struct rv_errtext *et) {
	const struct block_format *f = self->format;
	struct block_view v;
	for (size_t b = 0; b < block_count(self, n); b++) {
		RV_TRY(open_block(self, in, n, b, &v, et));
		f->dequantize_add(v.codes, v.scale, weight, v.len, acc + v.first);
	}
	return RV_OK;
}
