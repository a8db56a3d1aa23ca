/* softmax.c: softmax, cross-entropy and their gradient, in place on a chunk of logits.
 *
 * The idea: three passes over a row that the product before them left in cache: largest value;
 * exponentials and their sum, stored over the logits; scaled, with the target's share taken off.
 * The logits of one chunk of tokens are the only ones that ever exist. 8 bytes read and 8 written
 * per logit beyond the product's own.
 *
 * Measured (bench_kernels, two Zen 5 cores, V 256): the whole classifier, three products and this,
 * 427 GFLOP/s of 500. */
#include "kernels/cpu/isa/isa.h"

#include <math.h>

static float row_max(const float *x, int n) {
	if (n < VL) {
		float largest = x[0];
		for (int i = 1; i < n; i++)
			largest = x[i] > largest ? x[i] : largest;
		return largest;
	}
	vf m0 = vload(x), m1 = m0;
	int i = VL;
	for (; i + 2 * VL <= n; i += 2 * VL) {
		m0 = vmax(m0, vload(x + i));
		m1 = vmax(m1, vload(x + i + VL));
	}
	for (; i + VL <= n; i += VL)
		m0 = vmax(m0, vload(x + i));
	m0 = vmax(m0, vload(x + n - VL)); /* the tail overlaps lanes already seen */
	return vreduce_max(vmax(m0, m1));
}

/* Returns the sum of e^(x - largest); with `out` also stores the terms there (it may be x
 * itself). */
static float exp_sum(float *out, const float *x, float largest, int n) {
	vf m = vset1(largest), sum = vset1(0);
	int i = 0;
	for (; i + VL <= n; i += VL) {
		vf e = vexp(vload(x + i) - m);
		sum += e;
		if (out)
			vstore(out + i, e);
	}
	if (i < n) {
		float lanes[VL] = {0};
		vstore(lanes, vexp(vload_n(x + i, n - i) - m));
		memset(lanes + (n - i), 0, (size_t)(VL - (n - i)) * sizeof *lanes);
		sum += vload(lanes);
		if (out)
			memcpy(out + i, lanes, (size_t)(n - i) * sizeof *out);
	}
	return vreduce_add(sum);
}

void ISA(softmax_rows)(const struct softmax_rows *a) {
	for (int row = 0; row < a->n; row++) {
		float *z = a->logits + row * a->ld;
		int target = a->targets[row];
		if (target < 0) {
			a->losses[row] = 0;
			if (a->want_grad)
				memset(z, 0, (size_t)a->v * sizeof *z);
			continue;
		}
		float largest = row_max(z, a->v), at_target = z[target];
		float sum = exp_sum(a->want_grad ? z : NULL, z, largest, a->v);
		a->losses[row] = logf(sum) + (largest - at_target);
		if (!a->want_grad)
			continue;
		vf scale = vset1(a->grad_scale / sum);
		for (int i = 0; i < a->v; i += VL)
			vstore_n(z + i, vload_n(z + i, a->v - i) * scale, a->v - i);
		z[target] -= a->grad_scale;
	}
}
