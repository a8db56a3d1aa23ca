/* rope_table.c: see rope_table.h. */
#include "worker/train/rope_table.h"

#include "base/assert.h"

#include <math.h>

static double llama3_frequency(const struct model_rope *r, double f) {
	double turns = r->original_context * f / (2 * M_PI); /* over the original context */
	if (turns < r->low_freq)
		return f / r->factor;
	if (turns > r->high_freq)
		return f;
	double smooth = (turns - r->low_freq) / (r->high_freq - r->low_freq);
	return (1 - smooth) * f / r->factor + smooth * f;
}

static double frequency(const struct model_rope *r, int head_dim, int pair) {
	double f = pow(r->theta, -2.0 * pair / head_dim);
	switch (r->scaling) {
	case ROPE_PLAIN:
		return f;
	case ROPE_LINEAR:
		return f / r->factor;
	case ROPE_LLAMA3:
		return llama3_frequency(r, f);
	}
	RV_ASSERT(false);
	return 0;
}

void rope_table_row(const struct model_rope *r, int head_dim, int position, float *out) {
	for (int i = 0; i < head_dim / 2; i++) {
		double angle = position * frequency(r, head_dim, i);
		out[2 * i] = (float)cos(angle);
		out[2 * i + 1] = (float)sin(angle);
	}
}

enum rv_err rope_check(const struct model_rope *r, int head_dim, struct rv_errtext *et) {
	if (head_dim % 2 != 0 || head_dim > ROPE_MAX_HEAD_DIM)
		return rv_fail(et, RV_E_RANGE,
					   "a rotary embedding over %d channels per head: must be even, and at most %d; change n-head",
					   head_dim, ROPE_MAX_HEAD_DIM);
	if (!(r->theta >= 1))
		return rv_fail(et, RV_E_RANGE, "rope-theta = %g: must be at least 1", r->theta);
	if (r->scaling != ROPE_PLAIN && !(r->factor >= 1))
		return rv_fail(et, RV_E_RANGE, "rope-factor = %g: must be at least 1", r->factor);
	if (r->scaling == ROPE_LLAMA3 && !(r->high_freq > r->low_freq && r->low_freq > 0 && r->original_context > 0))
		return rv_fail(et, RV_E_RANGE,
					   "rope-low-freq = %g, rope-high-freq = %g, rope-original-context = %d: must be positive, the "
					   "second larger than the first",
					   r->low_freq, r->high_freq, r->original_context);
	return RV_OK;
}
