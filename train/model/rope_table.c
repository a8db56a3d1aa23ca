/* rope_table.c: computes angles in double. */
#include "train/model/rope_table.h"

#include "base/assert.h"

#include <math.h>

static double llama3_frequency(const struct model_rope *r, double f) {
	double turns = r->original_context * f / (2 * M_PI); /* turns over the original context */
	if (turns < r->low_freq)
		return f / r->factor;
	if (turns > r->high_freq)
		return f;
	double smooth = (turns - r->low_freq) / (r->high_freq - r->low_freq);
	return (1 - smooth) * f / r->factor + smooth * f;
}

double rope_table_frequency(const struct model_rope *r, int head_dim, int pair) {
	double f = pow(r->theta, -2.0 * pair / head_dim);
	switch (r->scaling) {
	case ROPE_PLAIN:
		return f;
	case ROPE_LINEAR:
		return f / r->factor;
	case ROPE_LLAMA3:
		return llama3_frequency(r, f);
	}
	RV_UNREACHABLE("rope scaling");
}

void rope_table_row(const struct model_rope *r, int head_dim, int position, float *out) {
	for (int i = 0; i < head_dim / 2; i++) {
		double angle = position * rope_table_frequency(r, head_dim, i);
		out[2 * i] = (float)cos(angle);
		out[2 * i + 1] = (float)sin(angle);
	}
}
