/* codec_packed.h: codecs of two or four bits per value, sign and magnitude, one scale per block of 128. Private to
 * outer/; the layout is in codec.h. A format says what the magnitudes stand for. */
#ifndef RV_OUTER_CODEC_PACKED_H
#define RV_OUTER_CODEC_PACKED_H

#include "outer/codec.h"
#include "outer/codec_block.h"

enum { PACKED_BLOCK = 128, PACKED_MAGNITUDES_MAX = 8 };

struct packed_format {
	struct block_scales scales;
	unsigned bits; /* 2 or 4: of a code, whose highest bit is the sign and the others the magnitude */
	/* Of each magnitude, times the scale, ascending from 0; the last of 2^(bits - 1) is scales.code_max. */
	float value[PACKED_MAGNITUDES_MAX];
	/* Magnitude m is the nearest to r = |x| / scale from from[m - 1] on: ascending, the last of 2^(bits - 1) - 1. */
	float from[PACKED_MAGNITUDES_MAX - 1];
};

/* As the functions of struct codec, with its faults. */
size_t packed_encoded_bytes(const struct packed_format *f, size_t n);
enum rv_err packed_encode(const struct packed_format *f, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err packed_encode_random(const struct packed_format *f, const float *x, size_t n,
								 const struct codec_noise *noise, uint8_t *out, struct rv_errtext *et);
enum rv_err packed_encode_delta(const struct packed_format *f, const float *a, const float *b, size_t n, uint8_t *out,
								struct rv_errtext *et);
enum rv_err packed_decode(const struct packed_format *f, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err packed_decode_add(const struct packed_format *f, const uint8_t *in, size_t n, float weight, float *acc,
							  struct rv_errtext *et);

/* Defines codec_NAME from the static struct packed_format NAME_format. */
#define RV_PACKED_CODEC(codec_name, codec_id)                                                                          \
	static size_t codec_name##_encoded_bytes(size_t n) {                                                               \
		return packed_encoded_bytes(&codec_name##_format, n);                                                          \
	}                                                                                                                  \
	static enum rv_err codec_name##_encode(const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {            \
		return packed_encode(&codec_name##_format, x, n, out, et);                                                     \
	}                                                                                                                  \
	static enum rv_err codec_name##_encode_random(const float *x, size_t n, const struct codec_noise *noise,           \
												  uint8_t *out, struct rv_errtext *et) {                               \
		return packed_encode_random(&codec_name##_format, x, n, noise, out, et);                                       \
	}                                                                                                                  \
	static enum rv_err codec_name##_encode_delta(const float *a, const float *b, size_t n, uint8_t *out,               \
												 struct rv_errtext *et) {                                              \
		return packed_encode_delta(&codec_name##_format, a, b, n, out, et);                                            \
	}                                                                                                                  \
	static enum rv_err codec_name##_decode(const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {             \
		return packed_decode(&codec_name##_format, in, n, x, et);                                                      \
	}                                                                                                                  \
	static enum rv_err codec_name##_decode_add(const uint8_t *in, size_t n, float weight, float *acc,                  \
											   struct rv_errtext *et) {                                                \
		return packed_decode_add(&codec_name##_format, in, n, weight, acc, et);                                        \
	}                                                                                                                  \
	const struct codec codec_##codec_name = {                                                                          \
		.name = #codec_name,                                                                                           \
		.id = codec_id,                                                                                                \
		.block = PACKED_BLOCK,                                                                                         \
		.canonical = true,                                                                                             \
		.encoded_bytes = codec_name##_encoded_bytes,                                                                   \
		.encode = codec_name##_encode,                                                                                 \
		.encode_random = codec_name##_encode_random,                                                                   \
		.encode_delta = codec_name##_encode_delta,                                                                     \
		.decode = codec_name##_decode,                                                                                 \
		.decode_add = codec_name##_decode_add,                                                                         \
	};

#endif
