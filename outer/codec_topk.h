/* codec_topk.h: codecs that keep the k largest magnitudes of every 4096 values (SparseLoCo, arXiv
 * 2508.15706, section 3; a chunk is there a 64 x 64 piece of a matrix, here 4096 consecutive values
 * of the vector). Private to outer/ and its tests.
 *
 * A chunk of n values is cut into groups of 4096, the last one shorter. A group of g values has
 * room for K = ceil(g k / 4096), so its size depends on g only. A group, little-endian:
 *
 *   u16 level     the upper 16 bits of an fp32: each value sent is the level or minus the level
 *   places        K (r + 1) + ceil(13 K / 8) bits, the first in the lowest bit of the first byte.
 *                 For each value sent, ascending: d, the number of values since the one before that
 *                 are not sent, in Rice's code: d >> r zeros, a one, the r lower bits of d, the
 *                 lowest first. Then zeros to the end. 2^r is half the mean distance, or 1
 *   signs (K)     1 bit each: 1 means minus. Then zeros to the end
 *
 * Rice's code of k places evenly spread over 4096 takes 7.5 bits each for k = 64, and log2 of the
 * number of their sets 7.4; the room is 7.6. Places that need more than there is room for, because
 * they lie in clusters, are few: the smallest values stay behind until the others fit.
 *
 * The values sent: of the K largest magnitudes that are at least 2^-126, among equal ones the
 * first, as many as fit; then of these the j largest for which (their sum)^2 / j is most, so that
 * one level moves the least energy into what is lost; the level is their mean, rounded to 8 bits
 * (nearest, ties away from zero). A value less than half the level is not sent. So a sent value
 * never moves by more than its magnitude, and x - Q(x) is exact: nothing is lost if the remainder
 * is kept for the next round.
 *
 * Q(0) = 0; Q is odd and idempotent, its encodings canonical. decode refuses places beyond g, bits
 * that are not 0 behind the values sent, and levels that are not finite and positive, or belong to
 * no value. */
#ifndef RV_OUTER_CODEC_TOPK_H
#define RV_OUTER_CODEC_TOPK_H

#include "outer/codec.h"
#include "outer/topk_select.h"

struct topk_format {
	size_t k;      /* values kept of TOPK_GROUP, 1..TOPK_GROUP */
	unsigned rice; /* r: 2^r is half of TOPK_GROUP / k, or 1 */
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
#define RV_TOPK_CODEC(codec_name, codec_id, kept, rice_bits)                                                           \
	{                                                                                                                  \
		.name = codec_name, .id = codec_id, .block = 1, .format = &(const struct topk_format){kept, rice_bits},        \
		.loses = 1, .encoded_bytes = topk_encoded_bytes, .encode = topk_encode, .encode_delta = topk_encode_delta,     \
		.decode = topk_decode, .decode_add = topk_decode_add                                                           \
	}

#endif
