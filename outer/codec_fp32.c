/* codec_fp32.c: the values unchanged: no loss, four bytes each. For comparisons, and if bandwidth
 * is no concern. */
#include "outer/codec.h"
#include "outer/codec_kernels.h"
#include "outer/float_bits.h"

/* Values handled at a time: they stay in the first-level cache between the check and the use. */
enum { PIECE = 1024 };

static size_t fp32_encoded_bytes(const struct codec *self, size_t n) {
	(void)self;
	return n * sizeof(float);
}

static size_t piece_len(size_t n, size_t at) {
	return n - at < PIECE ? n - at : PIECE;
}

static enum rv_err check_finite(const struct codec_kernels *k, enum rv_err fault, const float *x, size_t n,
								size_t offset, struct rv_errtext *et) {
	if (k->absmax_bits(x, n) < FLOAT_INF_BITS)
		return RV_OK;
	size_t i = 0;
	while (float_is_finite(x[i]))
		i++;
	return rv_fail(et, fault, "fp32: value %zu is %g; only finite numbers can be sent", offset + i, (double)x[i]);
}

static enum rv_err fp32_encode(const struct codec *self, const float *x, size_t n, uint8_t *out,
							   struct rv_errtext *et) {
	(void)self;
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t i = 0; i < n; i += PIECE) {
		RV_TRY(check_finite(k, RV_E_RANGE, x + i, piece_len(n, i), i, et));
		memcpy(out + i * sizeof *x, x + i, piece_len(n, i) * sizeof *x);
	}
	return RV_OK;
}

static enum rv_err fp32_encode_delta(const struct codec *self, const float *a, const float *b, size_t n, uint8_t *out,
									 struct rv_errtext *et) {
	(void)self;
	const struct codec_kernels *k = codec_kernels_best();
	float delta[PIECE];
	for (size_t i = 0; i < n; i += PIECE) {
		size_t len = piece_len(n, i);
		if (k->delta_absmax_bits(a + i, b + i, delta, len) >= FLOAT_INF_BITS)
			return check_finite(k, RV_E_RANGE, delta, len, i, et);
		memcpy(out + i * sizeof *a, delta, len * sizeof *a);
	}
	return RV_OK;
}

static enum rv_err fp32_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	(void)self;
	const struct codec_kernels *k = codec_kernels_best();
	for (size_t i = 0; i < n; i += PIECE) {
		memcpy(x + i, in + i * sizeof *x, piece_len(n, i) * sizeof *x);
		RV_TRY(check_finite(k, RV_E_CORRUPT, x + i, piece_len(n, i), i, et));
	}
	return RV_OK;
}

static enum rv_err fp32_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
								   struct rv_errtext *et) {
	(void)self;
	const struct codec_kernels *k = codec_kernels_best();
	float piece[PIECE]; /* the encoding need not be aligned */
	for (size_t i = 0; i < n; i += PIECE) {
		size_t len = piece_len(n, i);
		memcpy(piece, in + i * sizeof *acc, len * sizeof *acc);
		RV_TRY(check_finite(k, RV_E_CORRUPT, piece, len, i, et));
		k->scaled_add(piece, weight, acc + i, len);
	}
	return RV_OK;
}

const struct codec codec_fp32 = {
	.name = "fp32",
	.id = 2,
	.block = 1,
	.loses = 0,
	.encoded_bytes = fp32_encoded_bytes,
	.encode = fp32_encode,
	.encode_delta = fp32_encode_delta,
	.decode = fp32_decode,
	.decode_add = fp32_decode_add,
};
