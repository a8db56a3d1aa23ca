/* spoiler_worker.c: the real worker, whose means begin with a scale that is no number, by the linker (--wrap). It
 * exists for tests only. Everybody gets the same bytes, so all would vote for them. */
#include "outer/codec.h"

#include <string.h>

typedef enum rv_err reduce_to_fn(const struct codec *contributions, const struct codec *mean, const uint8_t *const *in,
								 const uint32_t *weights, int n_in, size_t n, float *scratch, uint8_t *out,
								 struct rv_errtext *et);
reduce_to_fn __real_codec_reduce_to, __wrap_codec_reduce_to;

enum rv_err __wrap_codec_reduce_to(const struct codec *contributions, const struct codec *mean,
								   const uint8_t *const *in, const uint32_t *weights, int n_in, size_t n,
								   float *scratch, uint8_t *out, struct rv_errtext *et) {
	enum rv_err e = __real_codec_reduce_to(contributions, mean, in, weights, n_in, n, scratch, out, et);
	if (e == RV_OK)
		memset(out, 0xff, sizeof(float));
	return e;
}
