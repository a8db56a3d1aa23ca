/* codec.c: the registry of codecs, and the one place where outer gradients are averaged. */
#include "outer/codec.h"

#include "base/assert.h"
#include "outer/elementwise.h"
#include "outer/registry.h"

#include <string.h>

enum { WEIGHT_SUM_MAX = 1 << 24 }; /* below it a sum of integers is exact in fp32 */

#define CODEC(name) &codec_##name,
const struct codec *const codec_registry[] = {
#include "base/codecs.def"
	NULL};
#undef CODEC

static const char *codec_name(int i) {
	return codec_registry[i] ? codec_registry[i]->name : NULL;
}

enum rv_err codec_find(const char *name, const struct codec **out, struct rv_errtext *et) {
	int i;
	RV_TRY(registry_find("codec", codec_name, name, &i, et));
	*out = codec_registry[i];
	return RV_OK;
}

RV_ELEMENTWISE_BODY divide_body(float *x, size_t n, float divisor) {
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		VEC_AT(x + i) = VEC_AT(x + i) / divisor;
	for (; i < n; i++)
		x[i] = x[i] / divisor;
}

RV_ELEMENTWISE(divide, (float *x, size_t n, float divisor), (x, n, divisor))

/* scratch (n) = the mean. */
static enum rv_err mean_of(const struct codec *c, const uint8_t *const *in, const uint32_t *weights, int n_in, size_t n,
						   float *scratch, struct rv_errtext *et) {
	RV_ASSERT(n_in > 0);
	memset(scratch, 0, n * sizeof *scratch);
	uint64_t weight_sum = 0;
	for (int i = 0; i < n_in; i++) {
		RV_ASSERT(weights[i] > 0);
		weight_sum += weights[i];
		enum rv_err e = c->decode_add(in[i], n, (float)weights[i], scratch, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "contribution %d of %d", i, n_in);
	}
	RV_ASSERT(weight_sum < WEIGHT_SUM_MAX);
	divide(scratch, n, (float)weight_sum);
	return RV_OK;
}

enum rv_err codec_reduce_to(const struct codec *contributions, const struct codec *mean, const uint8_t *const *in,
							const uint32_t *weights, int n_in, size_t n, float *scratch, uint8_t *out,
							struct rv_errtext *et) {
	RV_TRY(mean_of(contributions, in, weights, n_in, n, scratch, et));
	enum rv_err e = mean->encode(scratch, n, out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "mean of %d contributions", n_in);
}

enum rv_err codec_reduce_mean(const struct codec *c, const uint8_t *const *in, const uint32_t *weights, int n_in,
							  size_t n, float *scratch, uint8_t *out, struct rv_errtext *et) {
	return codec_reduce_to(c, c, in, weights, n_in, n, scratch, out, et);
}
