/* merge.c: the registry of aggregation rules, and what all rules share: see merge.h. */
#include "outer/merge.h"

#include "base/assert.h"
#include "outer/codec_kernels.h"

enum { WEIGHT_SUM_MAX = 1 << 24 }; /* below it a sum of integers is exact in fp32 */

#define MERGE_RULE(name, facts, least) &merge_##name,
const struct merge_ops *const merge_registry[] = {
#include "base/merge_rules.def"
	NULL};
#undef MERGE_RULE

size_t merge_scratch(const struct merge_rule *rule, size_t n, int n_in) {
	return n * (1 + (rule->ops->vectors ? rule->ops->vectors(n_in) : 0));
}

/* Returns the sum of squares of contribution i; arbitrary if it cannot be decoded. Overwrites
 * `values` (n). */
static double sum_squares(const struct merge_inputs *c, int i, float *values) {
	if (c->codec->sum_squares)
		return c->codec->sum_squares(c->codec, c->in[i], c->n);
	if (c->codec->decode(c->codec, c->in[i], c->n, values, NULL) != RV_OK)
		return 0;
	return codec_kernels_best()->dot(values, values, c->n);
}

/* Returns the dot product of contribution i, which can be decoded, with the mean. Overwrites
 * `values` (n). */
static double dot_with(const struct merge_inputs *c, int i, const float *mean, float *values) {
	if (c->codec->dot)
		return c->codec->dot(c->codec, c->in[i], c->n, mean);
	if (c->codec->decode(c->codec, c->in[i], c->n, values, NULL) != RV_OK)
		return 0;
	return codec_kernels_best()->dot(values, mean, c->n);
}

static void measure(const struct merge_inputs *c, const float *mean, struct merge_measured *m) {
	m->mean2 += codec_kernels_best()->dot(mean, mean, c->n);
	for (int i = 0; i < c->n_in; i++) {
		m->norm2[i] += c->norm2[i];
		m->dot[i] += dot_with(c, i, mean, m->values);
	}
}

static void check_weights(const uint32_t *weights, int n_in) {
	uint64_t sum = 0;
	for (int i = 0; i < n_in; i++) {
		RV_ASSERT(weights[i] > 0);
		sum += weights[i];
	}
	RV_ASSERT(sum < WEIGHT_SUM_MAX);
}

enum rv_err merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
						struct merge_measured *measured, struct rv_errtext *et) {
	RV_ASSERT(n > 0 && n_in > 0 && n_in <= MERGE_MAX_INPUTS);
	check_weights(weights, n_in);
	const struct merge_ops *ops = rule->ops;
	struct merge_inputs c = {.codec = rule->contributions, .in = in, .weights = weights, .n_in = n_in, .n = n};
	double norm2[MERGE_MAX_INPUTS];
	if (measured || (ops->wants_norms && ops->wants_norms(&rule->params, n_in))) {
		for (int i = 0; i < n_in; i++)
			norm2[i] = sum_squares(&c, i, scratch);
		c.norm2 = norm2;
	}
	RV_TRY(ops->merge(&c, &rule->params, scratch + n, scratch, measured ? measured->clipped : NULL, et));
	if (measured)
		measure(&c, scratch, measured);
	enum rv_err e = feedback_encode(rule->mean, scratch, n, feedback, out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "mean of %d contributions", n_in);
}
