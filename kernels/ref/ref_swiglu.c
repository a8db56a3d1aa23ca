/* ref_swiglu.c: the gated activation of a SwiGLU feed-forward layer (Shazeer 2020, arXiv
 * 2002.05202, equation 6). */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <math.h>

static double sigmoid(double x) {
	return 1 / (1 + exp(-x));
}

void ref_swiglu_forward(struct backend *be, act_t *out, const act_t *gate_up, int n, int f) {
	(void)be;
	for (int row = 0; row < n; row++) {
		const float *gate = act_f32c(gate_up) + (size_t)row * 2 * f, *up = gate + f;
		for (int i = 0; i < f; i++) {
			double g = (double)gate[i];
			act_f32(out)[(size_t)row * f + i] = (float)(g * sigmoid(g) * (double)up[i]);
		}
	}
}

/* Computes the gradient: silu'(g) = s (1 + g (1 - s)) for s = sigmoid(g). */
void ref_swiglu_backward(struct backend *be, act_t *dgate_up, const act_t *dout, const act_t *gate_up, int n, int f) {
	(void)be;
	for (int row = 0; row < n; row++) {
		const float *gate = act_f32c(gate_up) + (size_t)row * 2 * f, *up = gate + f;
		float *dgate = act_f32(dgate_up) + (size_t)row * 2 * f, *dup = dgate + f;
		for (int i = 0; i < f; i++) {
			double g = (double)gate[i], s = sigmoid(g), dy = (double)act_f32c(dout)[(size_t)row * f + i];
			dgate[i] = (float)(dy * (double)up[i] * s * (1 + g * (1 - s)));
			dup[i] = (float)(dy * g * s);
		}
	}
}
