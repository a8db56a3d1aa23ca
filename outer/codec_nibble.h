/* codec_nibble.h: codecs of four bits per value, sign and magnitude, one scale per block of 128. Private to outer/; the
 * layout is in codec.h. A format says what the eight magnitudes stand for. */
#ifndef RV_OUTER_CODEC_NIBBLE_H
#define RV_OUTER_CODEC_NIBBLE_H

#include "outer/codec.h"
#include "outer/codec_block.h"

enum { NIBBLE_BLOCK = 128 };

struct nibble_format {
	struct block_scales scales;
	float value[8]; /* of each magnitude, times the scale; value[0] is 0 and value[7] is scales.code_max */
	/* code[i] = the magnitude, 0 to 7, for |x[i]| / scale, given 1 / scale; |x[i]| <= code_max * scale * (1 + 2^-16) */
	void (*magnitudes)(const float *x, float inverse, uint8_t *code, size_t n);
};

size_t nibble_encoded_bytes(size_t n);
enum rv_err nibble_encode(const struct nibble_format *f, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err nibble_encode_delta(const struct nibble_format *f, const float *a, const float *b, size_t n, uint8_t *out,
								struct rv_errtext *et);
enum rv_err nibble_decode(const struct nibble_format *f, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err nibble_decode_add(const struct nibble_format *f, const uint8_t *in, size_t n, float weight, float *acc,
							  struct rv_errtext *et);

/* Defines codec_NAME from the static struct nibble_format NAME_format. */
#define RV_NIBBLE_CODEC(codec_name, codec_id)                                                                          \
	static enum rv_err codec_name##_encode(const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {            \
		return nibble_encode(&codec_name##_format, x, n, out, et);                                                     \
	}                                                                                                                  \
	static enum rv_err codec_name##_encode_delta(const float *a, const float *b, size_t n, uint8_t *out,               \
												 struct rv_errtext *et) {                                              \
		return nibble_encode_delta(&codec_name##_format, a, b, n, out, et);                                            \
	}                                                                                                                  \
	static enum rv_err codec_name##_decode(const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {             \
		return nibble_decode(&codec_name##_format, in, n, x, et);                                                      \
	}                                                                                                                  \
	static enum rv_err codec_name##_decode_add(const uint8_t *in, size_t n, float weight, float *acc,                  \
											   struct rv_errtext *et) {                                                \
		return nibble_decode_add(&codec_name##_format, in, n, weight, acc, et);                                        \
	}                                                                                                                  \
	const struct codec codec_##codec_name = {                                                                          \
		.name = #codec_name,                                                                                           \
		.id = codec_id,                                                                                                \
		.block = NIBBLE_BLOCK,                                                                                         \
		.canonical = true,                                                                                             \
		.encoded_bytes = nibble_encoded_bytes,                                                                         \
		.encode = codec_name##_encode,                                                                                 \
		.encode_delta = codec_name##_encode_delta,                                                                     \
		.decode = codec_name##_decode,                                                                                 \
		.decode_add = codec_name##_decode_add,                                                                         \
	};

#endif
