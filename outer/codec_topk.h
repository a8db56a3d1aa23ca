/* codec_topk.h: codecs that keep the k largest magnitudes of every 4096 values (SparseLoCo, arXiv 2508.15706, section
 * 3; its chunks are 64 x 64 pieces of a matrix, ours 4096 values of the vector in a row). Private to outer/ and its
 * tests.
 *
 * A chunk of n values is cut into groups of 4096, the last one shorter. Of a group of g values K = ceil(g k / 4096) may
 * be kept, so its size depends on g only. Kept are the K largest magnitudes that are not 0; of equal ones the first.
 * m <= K is how many are sent. A group, little-endian:
 *
 *   fp32 high, fp32 low, u16 m, indices, codes
 *   indices (K)   12 bits each, two to 3 bytes, the first in the low 12 bits: ascending; then zeros to the end
 *   codes (K)     2 bits each, four to a byte, the first lowest: bit 0 says high, bit 1 minus; then zeros to the end
 *
 * Levels. Magnitudes below 2^-126 count as 0. The mean magnitude of what is kept, in double, parts it in two; high and
 * low are the means of the parts, rounded to 17 bits as a scale is (codec_block.h); where that makes them equal, or the
 * lower part is empty, all is high and low is 0. A value less than half its level is not sent. So a sent value is never
 * moved by more than its magnitude, and (k <= 128) both have few enough bits that x - Q(x) is exact: nothing is lost
 * where what is left is kept for the next round.
 *
 * Q(0) = 0; Q is odd and idempotent, its encodings canonical. decode refuses m > K, indices not ascending or beyond g,
 * what is not 0 behind them, and levels that are no scales, or unordered, or of which one is not used. */
#ifndef RV_OUTER_CODEC_TOPK_H
#define RV_OUTER_CODEC_TOPK_H

#include "outer/codec.h"
#include "outer/topk_select.h"

struct topk_format {
	size_t k; /* 1..TOPK_GROUP */
};

/* The functions of struct codec, whose `format` is a struct topk_format. */
size_t topk_encoded_bytes(const struct codec *self, size_t n);
enum rv_err topk_encode(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
enum rv_err topk_encode_delta(const struct codec *self, const float *a, const float *b, size_t n, uint8_t *out,
							  struct rv_errtext *et);
enum rv_err topk_decode(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
enum rv_err topk_decode_add(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							struct rv_errtext *et);

/* The value of a codec that keeps `kept` of TOPK_GROUP values. */
#define RV_TOPK_CODEC(codec_name, codec_id, kept)                                                                      \
	{                                                                                                                  \
		.name = codec_name, .id = codec_id, .block = 1, .format = &(const struct topk_format){kept},                   \
		.encoded_bytes = topk_encoded_bytes, .encode = topk_encode, .encode_delta = topk_encode_delta,                 \
		.decode = topk_decode, .decode_add = topk_decode_add                                                           \
	}

#endif
