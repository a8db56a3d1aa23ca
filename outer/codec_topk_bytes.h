/* codec_topk_bytes.h: a group of values, few of them sent, as bytes and back. Private to outer/;
 * the layout is in codec_topk.h. */
#ifndef RV_OUTER_CODEC_TOPK_BYTES_H
#define RV_OUTER_CODEC_TOPK_BYTES_H

#include "outer/codec_block.h"
#include "outer/codec_topk.h"

/* The values sent of a group: each is sent as `level`, with its sign. */
struct topk_picked {
	size_t n;
	uint16_t index[TOPK_GROUP]; /* ascending */
	float value[TOPK_GROUP];
	float level; /* its lower 16 bits are 0 */
};

#define TOPK_LEVEL_MAX_BITS 0x7f7f0000u /* largest level, as bits */

/* Return the length of the group at value `at` of n, and its offset in bytes in the encoding. */
size_t topk_group_len(size_t n, size_t at);
size_t topk_group_at(const struct codec *self, size_t at);
/* Returns how many of n values are sent, at most. */
size_t topk_kept(const struct codec *self, size_t n);

/* Drops the smallest values until the places of the others fit a group of n values. */
void topk_fit(const struct codec *self, struct topk_picked *p, size_t n);
/* Writes a group of n values whose places fit. */
void topk_write_group(const struct codec *self, const struct topk_picked *p, size_t n, uint8_t *out);
/* Reads the group of n values at value `at` of the chunk encoded in `in`: sets n, index, value and
 * level of *p. RV_E_CORRUPT: topk_write_group cannot have written it. */
enum rv_err topk_read_group(const struct codec *self, const uint8_t *in, size_t n, size_t at, struct topk_picked *p,
							struct rv_errtext *et);

#endif
