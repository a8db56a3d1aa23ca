/* evil_rows.c: an owner that lies in a roster of several rows (evil.h). As an auditor, which alone
 * wants no error text, it reports what it finds. */
#include "outer/merge.h"
#include "tests/attack/evil.h"

#include <string.h>

typedef enum rv_err partial_fn(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights,
							   int n_in, size_t n, float *scratch, uint8_t *out, struct merge_measured *measured,
							   struct rv_errtext *et);
typedef enum rv_err join_fn(const struct merge_rule *rule, const uint8_t *const *partials, const uint32_t *row_weights,
							int n_rows, size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							struct rv_errtext *et);
partial_fn __real_merge_partial, __wrap_merge_partial;
join_fn __real_merge_join, __wrap_merge_join;

/* Multiplies n encoded values by the factor. */
static enum rv_err scale(const struct codec *codec, uint8_t *encoded, size_t n, float *scratch, double factor,
						 struct rv_errtext *et) {
	RV_TRY(codec->decode(codec, encoded, n, scratch, et));
	for (size_t i = 0; i < n; i++)
		scratch[i] = (float)((double)scratch[i] * factor);
	return codec->encode(codec, scratch, n, encoded, et);
}

enum rv_err __wrap_merge_partial(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights,
								 int n_in, size_t n, float *scratch, uint8_t *out, struct merge_measured *measured,
								 struct rv_errtext *et) {
	double factor;
	RV_TRY(__real_merge_partial(rule, in, weights, n_in, n, scratch, out, measured, et));
	return et == NULL || !evil("sum", &factor) ? RV_OK : scale(&codec_fp32, out, n, scratch, factor, et);
}

enum rv_err __wrap_merge_join(const struct merge_rule *rule, const uint8_t *const *partials,
							  const uint32_t *row_weights, int n_rows, size_t n, float *scratch,
							  const struct feedback *feedback, uint8_t *out, struct rv_errtext *et) {
	double factor;
	RV_TRY(__real_merge_join(rule, partials, row_weights, n_rows, n, scratch, feedback, out, et));
	return et == NULL || !evil("join", &factor) ? RV_OK : scale(rule->mean, out, n, scratch, factor, et);
}
