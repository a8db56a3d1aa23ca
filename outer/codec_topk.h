/* codec_topk.h: codecs that keep the k largest magnitudes of every 4096 values (SparseLoCo, arXiv
 * 2508.15706, section 3; a chunk is there a 64 x 64 piece of a matrix, here 4096 consecutive values
 * of the vector). Private to outer/ and its tests.
 *
 * A chunk of n values is cut into groups of 4096, the last one shorter. A group of g values keeps
 * at most K = ceil(g k / 4096), so its size depends on g only: the K largest magnitudes that are
 * not 0; among equal ones the first. m <= K of them are sent. A group, little-endian:
 *
 *   fp32 high, fp32 low, u16 m, indices, codes
 *   indices (K)   12 bits each, two to 3 bytes, the first in the low 12 bits: ascending; then zeros
 *                 to the end
 *   codes (K)     2 bits each, four to a byte, the first lowest: bit 0 means high, bit 1 minus;
 *                 then zeros to the end
 *
 * Levels. Magnitudes below 2^-126 count as 0. The mean magnitude of the kept values, in double,
 * divides them into two parts; high and low are the means of the parts, rounded to 17 bits as a
 * scale is (codec_block.h). If that makes them equal, or the lower part is empty, all values are
 * high and low is 0. A value less than half its level is not sent. So a sent value never moves by
 * more than its magnitude, and (k <= 128) both have few enough bits that x - Q(x) is exact: nothing
 * is lost if the remainder is kept for the next round.
 *
 * Q(0) = 0; Q is odd and idempotent, its encodings canonical. decode refuses m > K, indices not
 * ascending or beyond g, bits that are not 0 behind them, and levels that are no scales, unordered,
 * or used by no value. */
#ifndef RV_OUTER_CODEC_TOPK_H
#define RV_OUTER_CODEC_TOPK_H

#include "outer/codec.h"
#include "outer/topk_select.h"

struct topk_format {
	size_t k; /* values kept of TOPK_GROUP, 1..TOPK_GROUP */
};

/* Implement the functions of struct codec, whose `format` is a struct topk_format. */
size_t topk_encoded_bytes(const struct codec *self, size_t n);
enum rv_err topk_encode(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err topk_encode_delta(const struct codec *self, const float *a, const float *b, size_t n, uint8_t *out,
							  struct rv_errtext *et);
enum rv_err topk_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err topk_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							struct rv_errtext *et);

/* Initializes a codec that keeps `kept` of TOPK_GROUP values. */
#define RV_TOPK_CODEC(codec_name, codec_id, kept)                                                                      \
	{                                                                                                                  \
		.name = codec_name, .id = codec_id, .block = 1, .format = &(const struct topk_format){kept},                   \
		.encoded_bytes = topk_encoded_bytes, .encode = topk_encode, .encode_delta = topk_encode_delta,                 \
		.decode = topk_decode, .decode_add = topk_decode_add                                                           \
	}

#endif
