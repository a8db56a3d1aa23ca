/* codec.h: how a vector of fp32 becomes bytes on the wire. One file per codec, behind this table,
 * found by name.
 *
 * A codec encodes *chunks* independently: chunk_elems values each (the last chunk of a vector may
 * be shorter). The layout within a chunk is the codec's own; its size depends only on the element
 * count, so offsets are computed, never sent. Encoding is deterministic and identical on every
 * machine and backend: the encoded bytes are hashed and voted on. Rounding is to nearest even
 * throughout (the default floating-point environment).
 *
 * "fp32"  n values, little-endian IEEE-754. Both directions refuse NaN and infinities.
 *
 * "int8"  B = ceil(n / 256) scales (fp32, little-endian), then n values (two's complement int8).
 *         Block b holds values [256 b, min(256 b + 256, n)). With A = max |x| of the block, each
 *         operation a single correctly rounded fp32 one:
 *             A < 127 * 2^-126:  scale = 0 and all values 0 (so no denormal ever takes part)
 *             otherwise:         scale = min(A / 127, SCALE_MAX), its significand rounded to 17
 *                                bits (nearest, ties away from zero); value = nearest integer,
 *                                ties to even, of x * (1 / scale)
 *         SCALE_MAX is the largest scale for which 127 * scale is finite. A decoded value is
 *         value * scale: 7 bits times 17 bits, hence exact. It follows: Q(0) = 0; Q(-x) = -Q(x);
 *         |x - Q(x)| <= A/254 * (1 + 2^-14); and encode(decode(e)) == e for every e that decode
 *         accepts, because decode accepts nothing else: scale 0 with any value not 0, a scale with
 *         more bits or out of [2^-126, SCALE_MAX], a value of -128, or a block in which no value is
 *         +-127 are RV_E_CORRUPT. There is one encoding for each decodable vector.
 *
 * "int16" int8's layout with 32767 for 127 and two bytes a value (two's complement, little-endian).
 *         A decoded value is value * scale, rounded once to fp32. |x - Q(x)|
 *         <= A/65534 * (1 + 2^-6); Q(0) = 0, oddness and refusals (-32768 for -128) as for int8.
 *         16.125 bits per value. On normal values it errs 7 times less than fp16 with a scale per
 *         block, 60 times less than bf16 (docs/benchmarks.md).
 *
 * "int4"  B = ceil(n / 128) scales as int8's with 7 for 127, then ceil(n / 2) bytes of two values
 *         each, the first in the low half: bit 3 is the sign, bits 0-2 the magnitude m; an odd n
 *         leaves 0 in the last half. m is the nearest integer, ties to even, of |x| * (1 / scale).
 *         A decoded value is +-m * scale, exact. |x - Q(x)| <= A/14 * (1 + 2^-12); Q(0) = 0,
 *         oddness and refusals as for int8; a negative zero is refused too. 4.25 bits per value.
 *
 * "topk32", "topk64", "topk128"  the 32 (64, 128) largest magnitudes in every 4096 values, as one
 *         magnitude and signs (SparseLoCo, arXiv 2508.15706, has two). The format is in
 *         codec_topk.h.
 *
 * encode(decode(e)) == e for every e that decode accepts, of every codec: the mean of equal
 * contributions is theirs. */
#ifndef RV_OUTER_CODEC_H
#define RV_OUTER_CODEC_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A codec. Each function takes the codec itself first. */
struct codec {
	const char *name;   /* "int8", "fp32" */
	uint8_t id;         /* number on the wire and in round logs; never reused */
	size_t block;       /* elements; divides the size of every chunk but the last */
	const void *format; /* parameters of the codec's own; NULL: none */
	/* No chunk of normal values changes by more than this part of its norm when it is encoded. */
	double loses;

	size_t (*encoded_bytes)(const struct codec *self, size_t n);
	/* Encodes x (n) into out (encoded_bytes(n)). RV_E_RANGE: x holds a NaN or an infinity, and the
	 * text gives its place; `out` is then unspecified. */
	enum rv_err (*encode)(const struct codec *self, const float *x, size_t n, uint8_t *out, struct rv_errtext *et);
	/* Encodes x = a - b, (n) each, fused: the outer gradient is never stored. The faults of
	 * encode. */
	enum rv_err (*encode_delta)(const struct codec *self, const float *a, const float *b, size_t n, uint8_t *out,
								struct rv_errtext *et);
	/* Decodes `in` into x (n). RV_E_CORRUPT: the bytes cannot be an encoding; x is then
	 * unspecified. */
	enum rv_err (*decode)(const struct codec *self, const uint8_t *in, size_t n, float *x, struct rv_errtext *et);
	/* Sets acc (n) to acc + (weight * decoded), two roundings; weight 1 adds the decoded value
	 * exactly. The faults of decode; acc is then partly changed. */
	enum rv_err (*decode_add)(const struct codec *self, const uint8_t *in, size_t n, float weight, float *acc,
							  struct rv_errtext *et);
	/* Returns the sum of squares of the decoded values, in an order that is the codec's own and the
	 * same on every machine. The result is arbitrary for bytes that decode refuses. NULL: callers
	 * decode, and use codec_kernels' dot product. */
	double (*sum_squares)(const struct codec *self, const uint8_t *in, size_t n);
	/* Returns the dot product of the decoded values with y (n), rounded as the codec chooses, the
	 * same on every machine. NULL: as for sum_squares. */
	double (*dot)(const struct codec *self, const uint8_t *in, size_t n, const float *y);
};

#define CODEC(name, facts, of_mean) extern const struct codec codec_##name;
#include "base/codecs.def"
#undef CODEC
extern const struct codec *const codec_registry[]; /* by enum codec_choice; NULL-terminated */
/* Returns the codec of that id; NULL: there is none. */
const struct codec *codec_by_id(uint8_t id);
/* Returns true if `coarse` takes fewer bytes than `fine` for long vectors. */
bool codec_is_coarser(const struct codec *coarse, const struct codec *fine);

#endif
