/* spoiler_worker.c: the real worker, whose means begin with a scale that is NaN, by the linker
 * (--wrap). It exists for tests only. Everybody gets the same bytes, so all would vote for them. */
#include "outer/merge.h"

#include <string.h>

typedef enum rv_err merge_fn(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
							 size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							 struct merge_measured *measured, struct rv_errtext *et);
merge_fn __real_merge_chunk, __wrap_merge_chunk;

enum rv_err __wrap_merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights,
							   int n_in, size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							   struct merge_measured *measured, struct rv_errtext *et) {
	enum rv_err e = __real_merge_chunk(rule, in, weights, n_in, n, scratch, feedback, out, measured, et);
	if (e == RV_OK)
		memset(out, 0xff, sizeof(float));
	return e;
}
