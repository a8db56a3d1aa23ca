/* swiglu.c: the gated activation, silu(gate) * up, and its gradient.
 *
 * The idea: one exponential and one division per element in one pass. Forward moves 12 bytes per
 * output, backward 20.
 *
 * Measured (bench_kernels, one Zen 5 core, 2048 x 768): 25 GB/s forward, 32 backward, where a triad
 * does 49: the exponential and the division bind on one core. */
#include "kernels/cpu/isa/isa.h"

void ISA(swiglu_rows)(float *out, const float *gate_up, int n, int f) {
	for (int row = 0; row < n; row++, out += f, gate_up += 2 * (ptrdiff_t)f)
		for (int i = 0; i < f; i += VL) {
			vf gate = vload_n(gate_up + i, f - i), up = vload_n(gate_up + f + i, f - i);
			vstore_n(out + i, gate / (vset1(1) + vexp(-gate)) * up, f - i);
		}
}

/* Computes the gradient, with e = e^-gate and s = sigmoid(gate): silu' = s (1 + gate (1 - s)),
 * where 1 - s = e s does not cancel. */
void ISA(swiglu_grad_rows)(float *dgate_up, const float *dout, const float *gate_up, int n, int f) {
	for (int row = 0; row < n; row++, dout += f, gate_up += 2 * (ptrdiff_t)f, dgate_up += 2 * (ptrdiff_t)f)
		for (int i = 0; i < f; i += VL) {
			int k = f - i;
			vf gate = vload_n(gate_up + i, k), up = vload_n(gate_up + f + i, k), dy = vload_n(dout + i, k);
			vf e = vexp(-gate), s = vset1(1) / (vset1(1) + e), silu = gate * s;
			vstore_n(dgate_up + i, dy * up * vfma(silu, e * s, s), k);
			vstore_n(dgate_up + f + i, dy * silu, k);
		}
}
