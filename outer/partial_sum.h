/* partial_sum.h: the partial sum of a row (merge.h) as bytes between rows: exactly, and shorter
 * where most of its values are zero, as sums of sparse contributions are.
 *
 * n values have a bit each in a map of B = ceil(n / 8) bytes, value 8 b + i bit i of byte b, set if
 * the value's fp32 is not all zero bits (so -0 is kept). The sparse form is
 *
 *     ceil(B / 8) bytes   the same kind of map over the B bytes: those that are not zero
 *     these bytes of the map, in order
 *     the values of set bits, in order: fp32, little-endian
 *
 * It is sent if it is shorter than 4 n bytes, else the n values as they are: the length says which.
 * There is one form for each vector, and unpacking refuses all others. */
#ifndef RV_OUTER_PARTIAL_SUM_H
#define RV_OUTER_PARTIAL_SUM_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Writes the shorter form of n values, `sum` (4 n bytes), to `out`, which has room for 4 n bytes;
 * returns its length. */
size_t partial_sum_pack(const uint8_t *sum, size_t n, uint8_t *out);
/* Sets `sum` (4 n bytes) to the values that `in` holds. RV_E_CORRUPT: partial_sum_pack cannot have
 * written it; `sum` is then unspecified. Values may be NaN or infinite: merge_join refuses them. */
enum rv_err partial_sum_unpack(const uint8_t *in, size_t bytes, size_t n, uint8_t *sum, struct rv_errtext *et);

#endif
