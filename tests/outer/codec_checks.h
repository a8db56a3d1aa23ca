/* codec_checks.h: what outer/codec.h promises of every codec, checked of any of them in the same
 * way.
 *
 * Encodings are made and read in memory of exactly their size, so that AddressSanitizer sees a byte
 * too many. */
#ifndef RV_TESTS_OUTER_CODEC_CHECKS_H
#define RV_TESTS_OUTER_CODEC_CHECKS_H

#include "outer/codec.h"

/* The encoding of decode(encode(x)) is that of x: there is one for each decodable vector. */
void check_one_encoding(const struct codec *c, const float *x, size_t n);
/* Q(-x) = -Q(x), to the bit but for the sign of 0. */
void check_odd(const struct codec *c, const float *x, size_t n);

/* Of so many values: encode_delta is encode of the difference; decode_add is decode, weighted,
 * added. */
void check_delta_and_decode_add(const struct codec *c, size_t n);
/* A NaN or an infinity among n values, at every step'th place: encode and encode_delta refuse it
 * and say where. */
void check_refuses_what_is_not_finite(const struct codec *c, size_t n, size_t step);

/* decode and decode_add refuse `code`, for a reason that says `why`. */
void check_refused(const struct codec *c, const uint8_t *code, size_t n, const char *why);
/* Whether decode takes `code`, whatever that is: then it gives finite values, whose encoding it
 * is. */
bool check_any_bytes(const struct codec *c, const uint8_t *code, size_t n);

/* Returns how many evenly spaced magnitudes above 0 the codec has in a block, the last of which is
 * the block's largest value; 0: its values are not known here, and only what holds of every codec
 * is checked of it. */
int codec_even_steps(const struct codec *c);
/* Returns the facts of base/codecs.def. */
unsigned codec_facts_of(const struct codec *c);

/* |y - x| / |x|, of y = decode(encode(x)). */
double codec_relative_error(const struct codec *c, const float *x, size_t n);

#endif
