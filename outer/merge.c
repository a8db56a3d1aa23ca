/* merge.c: the registry of aggregation rules, and what all rules share: see merge.h. */
#include "outer/merge.h"

#include "base/assert.h"
#include "base/rows.h"
#include "outer/codec_kernels.h"
#include "outer/merge_values.h"

#include <string.h>

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
	const struct codec *codec = c->codecs[i];
	if (codec->sum_squares)
		return codec->sum_squares(codec, c->in[i], c->n);
	if (codec->decode(codec, c->in[i], c->n, values, NULL) != RV_OK)
		return 0;
	return codec_kernels_best()->dot(values, values, c->n);
}

/* Returns the dot product of contribution i, which can be decoded, with the mean. Overwrites
 * `values` (n). */
static double dot_with(const struct merge_inputs *c, int i, const float *mean, float *values) {
	const struct codec *codec = c->codecs[i];
	if (codec->dot)
		return codec->dot(codec, c->in[i], c->n, mean);
	if (codec->decode(codec, c->in[i], c->n, values, NULL) != RV_OK)
		return 0;
	return codec_kernels_best()->dot(values, mean, c->n);
}

static void measure(const struct merge_inputs *c, const float *mean, const uint32_t *clipped,
					struct merge_measured *m) {
	const double mean2 = codec_kernels_best()->dot(mean, mean, c->n);
	m->mean2 += mean2;
	for (int i = 0; i < c->n_in; i++) {
		const int at = m->places ? m->places[i] : i;
		m->norm2[at] += c->norm2[i];
		m->mean2_of[at] += mean2;
		m->dot[at] += dot_with(c, i, mean, m->values);
		m->clipped[at] += clipped[i];
	}
}

/* Room for what merging a chunk needs of its inputs. */
struct room {
	const struct codec *codecs[MERGE_MAX_INPUTS];
	double norm2[MERGE_MAX_INPUTS];
	uint32_t clipped[MERGE_MAX_INPUTS];
};

/* The contributions to a chunk; their norms only if wanted. */
static struct merge_inputs inputs_of(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights,
									 int n_in, size_t n, float *scratch, bool measures, struct room *room) {
	RV_ASSERT(n > 0 && n_in > 0 && n_in <= MERGE_MAX_INPUTS);
	(void)merge_weight_sum(weights, n_in); /* asserts */
	for (int i = 0; i < n_in; i++) {
		room->codecs[i] = rule->codecs ? rule->codecs[i] : rule->contributions;
		room->clipped[i] = 0;
	}
	struct merge_inputs c = {
		.codecs = room->codecs, .in = in, .weights = weights, .n_in = n_in, .n = n, .center = rule->center};
	if (!measures && !(rule->ops->wants_norms && rule->ops->wants_norms(&rule->params, n_in)))
		return c;
	for (int i = 0; i < n_in; i++)
		room->norm2[i] = sum_squares(&c, i, scratch);
	c.norm2 = room->norm2;
	return c;
}

enum rv_err merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
						struct merge_measured *measured, struct rv_errtext *et) {
	struct room room;
	const struct merge_inputs c = inputs_of(rule, in, weights, n_in, n, scratch, measured, &room);
	RV_TRY(rule->ops->merge(&c, &rule->params, scratch + n, scratch, room.clipped, et));
	if (measured)
		measure(&c, scratch, room.clipped, measured);
	enum rv_err e = feedback_encode(rule->mean, scratch, n, feedback, out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "mean of %d contributions", n_in);
}

/* ---- two levels ---- */

size_t merge_partial_bytes(size_t n) {
	return codec_fp32.encoded_bytes(&codec_fp32, n);
}

/* Sets sum (n) to the merged contributions times the sum of their weights. */
static enum rv_err sum_of(const struct merge_rule *rule, const struct merge_inputs *c, float *work, float *sum,
						  uint32_t *clipped, struct rv_errtext *et) {
	if (rule->ops->sum)
		return rule->ops->sum(c, &rule->params, work, sum, clipped, et);
	RV_TRY(rule->ops->merge(c, &rule->params, work, sum, clipped, et));
	merge_multiply(sum, c->n, (float)merge_weight_sum(c->weights, c->n_in));
	return RV_OK;
}

enum rv_err merge_partial(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
						  size_t n, float *scratch, uint8_t *out, struct merge_measured *measured,
						  struct rv_errtext *et) {
	struct room room;
	const struct merge_inputs c = inputs_of(rule, in, weights, n_in, n, scratch, measured, &room);
	RV_TRY(sum_of(rule, &c, scratch + n, scratch, room.clipped, et));
	enum rv_err e = codec_fp32.encode(&codec_fp32, scratch, n, out, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "partial sum of %d contributions", n_in);
	if (measured) {
		merge_divide(scratch, n, (float)merge_weight_sum(weights, n_in));
		measure(&c, scratch, room.clipped, measured);
	}
	return RV_OK;
}

enum rv_err merge_join(const struct merge_rule *rule, const uint8_t *const *partials, const uint32_t *row_weights,
					   int n_rows, size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
					   struct rv_errtext *et) {
	RV_ASSERT(n > 0 && n_rows > 0 && n_rows <= ROWS_MAX);
	memset(scratch, 0, n * sizeof *scratch);
	for (int r = 0; r < n_rows; r++) {
		enum rv_err e = codec_fp32.decode_add(&codec_fp32, partials[r], n, 1, scratch, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "partial sum %d of %d", r, n_rows);
	}
	merge_divide(scratch, n, (float)merge_weight_sum(row_weights, n_rows));
	enum rv_err e = feedback_encode(rule->mean, scratch, n, feedback, out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "mean of %d rows", n_rows);
}
