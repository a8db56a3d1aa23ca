/* codec_topk.h: codecs that keep the k largest magnitudes of every 4096 values (SparseLoCo, arXiv 2508.15706, section
 * 3; its chunks are 64 x 64 pieces of a matrix, ours 4096 values of the vector in a row). Private to outer/ and its
 * tests.
 *
 * A chunk of n values is cut into groups of 4096, the last one shorter. Of a group of g values K = ceil(g k / 4096) may
 * be kept, so its size depends on g only. Kept are the K largest magnitudes that are not 0; of equal ones the first.
 * m <= K is how many are sent. A group, little-endian:
 *
 *   TOPK_LEVELS   fp32 high, fp32 low, u16 m, indices, codes
 *                 a code is 2 bits, four to a byte, the first lowest: bit 0 says high, bit 1 minus
 *   TOPK_FP32     u16 m, indices, fp32 values (K)
 *
 *   indices (K)   12 bits each, two to 3 bytes, the first in the low 12 bits: ascending; then, and in values and codes
 *                 too, zeros to the end
 *
 * Levels. Magnitudes below 2^-126 count as 0. The mean magnitude of what is kept, in double, parts it in two; high and
 * low are the means of the parts, rounded to 17 bits as a scale is (codec_block.h); where that makes them equal, or the
 * lower part is empty, all is high and low is 0. A value less than half its level is not sent. So a sent value is never
 * moved by more than its magnitude, and (k <= 128) both have few enough bits that x - Q(x) is exact: nothing is lost
 * where what is left is kept for the next round. At random: low and high are the smallest and the largest kept
 * magnitude, every value goes to one of the two, and all are sent.
 *
 * Q(0) = 0; Q is odd and idempotent, its encodings canonical. decode refuses m > K, indices not ascending or beyond g,
 * what is not 0 behind them, levels that are no scales, or unordered, or of which one is not used, and values that are
 * 0 or not finite. */
#ifndef RV_OUTER_CODEC_TOPK_H
#define RV_OUTER_CODEC_TOPK_H

#include "outer/codec.h"
#include "outer/topk_select.h"

enum topk_values { TOPK_LEVELS, TOPK_FP32 };

struct topk_format {
	const char *codec;
	size_t k; /* 1..TOPK_GROUP */
	enum topk_values values;
};

size_t topk_encoded_bytes(const struct topk_format *f, size_t n);
enum rv_err topk_encode(const struct topk_format *f, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err topk_encode_random(const struct topk_format *f, const float *x, size_t n, const struct codec_noise *noise,
							   uint8_t *out, struct rv_errtext *et);
enum rv_err topk_encode_delta(const struct topk_format *f, const float *a, const float *b, size_t n, uint8_t *out,
							  struct rv_errtext *et);
enum rv_err topk_decode(const struct topk_format *f, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err topk_decode_add(const struct topk_format *f, const uint8_t *in, size_t n, float weight, float *acc,
							struct rv_errtext *et);

/* Defines codec_NAME. RANDOM: its encode_random, or NULL. */
#define RV_TOPK_CODEC(codec_name, codec_id, kept, kind, random)                                                        \
	static const struct topk_format codec_name##_format = {#codec_name, kept, kind};                                   \
	static size_t codec_name##_encoded_bytes(size_t n) {                                                               \
		return topk_encoded_bytes(&codec_name##_format, n);                                                            \
	}                                                                                                                  \
	static enum rv_err codec_name##_encode(const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {            \
		return topk_encode(&codec_name##_format, x, n, out, et);                                                       \
	}                                                                                                                  \
	static enum rv_err codec_name##_encode_delta(const float *a, const float *b, size_t n, uint8_t *out,               \
												 struct rv_errtext *et) {                                              \
		return topk_encode_delta(&codec_name##_format, a, b, n, out, et);                                              \
	}                                                                                                                  \
	static enum rv_err codec_name##_decode(const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {             \
		return topk_decode(&codec_name##_format, in, n, x, et);                                                        \
	}                                                                                                                  \
	static enum rv_err codec_name##_decode_add(const uint8_t *in, size_t n, float weight, float *acc,                  \
											   struct rv_errtext *et) {                                                \
		return topk_decode_add(&codec_name##_format, in, n, weight, acc, et);                                          \
	}                                                                                                                  \
	const struct codec codec_##codec_name = {                                                                          \
		.name = #codec_name,                                                                                           \
		.id = codec_id,                                                                                                \
		.block = 1,                                                                                                    \
		.canonical = true,                                                                                             \
		.encoded_bytes = codec_name##_encoded_bytes,                                                                   \
		.encode = codec_name##_encode,                                                                                 \
		.encode_random = random,                                                                                       \
		.encode_delta = codec_name##_encode_delta,                                                                     \
		.decode = codec_name##_decode,                                                                                 \
		.decode_add = codec_name##_decode_add,                                                                         \
	};

/* The same with levels, which can be rounded at random. */
#define RV_TOPK_LEVELS_CODEC(codec_name, codec_id, kept)                                                               \
	static enum rv_err codec_name##_encode_random(const float *x, size_t n, const struct codec_noise *noise,           \
												  uint8_t *out, struct rv_errtext *et);                                \
	RV_TOPK_CODEC(codec_name, codec_id, kept, TOPK_LEVELS, codec_name##_encode_random)                                 \
	static enum rv_err codec_name##_encode_random(const float *x, size_t n, const struct codec_noise *noise,           \
												  uint8_t *out, struct rv_errtext *et) {                               \
		return topk_encode_random(&codec_name##_format, x, n, noise, out, et);                                         \
	}

#endif
