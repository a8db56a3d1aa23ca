/* recode.h: a contribution in another codec than the run's: a member whose line is slow sends its
 * contribution by a coarser one (base/slow_lines.h).
 *
 * The contribution is encoded by the run's codec when its steps are done, before anybody knows who
 * takes part; the roster then says by which codec it is sent, and its sender decodes it and encodes
 * it again, chunk by chunk. The loss of the second encoding is a part of the remainder
 * (contribution_commit). A function of the bytes: the lab and `rivulet replay` make the same. */
#ifndef RV_OUTER_RECODE_H
#define RV_OUTER_RECODE_H

#include "outer/codec.h"
#include "outer/fragments.h"

/* Encodes the n values of `in`, an encoding by `from`, by `to` into `out`. Leaves the values of
 * `in` in `values` (n). RV_E_CORRUPT: `in` is no encoding. */
enum rv_err recode_chunk(const struct codec *from, const struct codec *to, const uint8_t *in, size_t n, uint8_t *out,
						 float *values, struct rv_errtext *et);
/* Does the same for all chunks of a vector: `out` has chunking_total_bytes for `to`, `values`
 * chunk_elems. */
enum rv_err recode_vector(const struct chunking *c, const struct codec *from, const struct codec *to, const uint8_t *in,
						  uint8_t *out, float *values, struct rv_errtext *et);

#endif
