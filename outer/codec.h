/* codec.h: how a vector of fp32 becomes bytes on the wire. One file per codec, behind this table, found by name.
 *
 * A codec encodes *chunks* independently: chunk_elems values (the last chunk of a vector may be shorter). Within a
 * chunk the layout is the codec's own; its size depends only on the element count, so offsets are computed, never sent.
 * Encoding is deterministic and identical on every machine and backend: the encoded bytes are what is hashed and voted
 * on.
 */
#ifndef RV_OUTER_CODEC_H
#define RV_OUTER_CODEC_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct codec {
	const char *name; /* "int8", "fp32" */
	uint8_t id;       /* on the wire and in round logs; never reused */
	size_t block;     /* chunk sizes must be a multiple of this many elements (the last chunk excepted) */

	size_t (*encoded_bytes)(size_t n);
	/* x (n) -> out (encoded_bytes(n)). RV_E_RANGE when x holds a NaN or an infinity (the text says where); out is then
	 * unspecified. */
	enum rv_err (*encode)(const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
	/* x (n) = decoded values. RV_E_CORRUPT when the bytes cannot be an encoding (NaN, infinite or negative scale, a
	 * value outside the code). */
	enum rv_err (*decode)(const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
	/* acc (n) += weight * decoded; the same faults, with acc then partly changed. weight 1 adds the decoded value
	 * exactly. */
	enum rv_err (*decode_add)(const uint8_t *in, size_t n, float weight, float *acc, struct rv_errtext *et);
};

extern const struct codec codec_int8; /* symmetric, absmax per block of 256, fp32 scale, nearest even */
extern const struct codec codec_fp32; /* the values themselves, little-endian */
extern const struct codec *const codec_registry[];

/* RV_E_NOTFOUND lists the names there are. */
enum rv_err codec_find(const char *name, const struct codec **out, struct rv_errtext *et);

/* The owner's reduction of one chunk: decodes the n_in contributions in the order given, sums w_i * x_i in fp32 from
 * zero, divides by the sum of the weights, and encodes the mean once. Weights are positive integers (normally 1).
 * `scratch` holds n floats. This is the only place where outer gradients are averaged: the real all-reduce, the lab's
 * in-process run and the tests' oracle all call it. Any order of arrival gives the same bytes, because the order is the
 * caller's roster order. */
enum rv_err codec_reduce_mean(const struct codec *c, const uint8_t *const *in, const uint32_t *weights, int n_in,
							  size_t n, float *scratch, uint8_t *out, struct rv_errtext *et);

#endif
