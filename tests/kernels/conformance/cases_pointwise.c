/* cases_pointwise.c: rotations and SwiGLU. */
#include "tests/kernels/conformance/cases.h"

#include <math.h>
#include <stdlib.h>

static const struct attention_shape rope_sizes[] = {{1, 1, 1, 1, 2},      {2, 3, 2, 1, 6},   {1, 17, 3, 3, 14},
													{2, 33, 4, 2, 64},    {1, 7, 8, 2, 128}, {3, 127, 2, 1, 32},
													{2, 1024, 12, 12, 64}};

static int make_table(struct duo *d, int positions, int head_dim) {
	size_t n = (size_t)positions * head_dim;
	float *table = zero_floats(n);
	for (size_t i = 0; i < n / 2; i++) {
		table[2 * i] = (float)cos(0.37 * (double)i);
		table[2 * i + 1] = (float)sin(0.37 * (double)i);
	}
	int array = duo_given(d, "table", DUO_F32, table, n);
	free(table);
	return array;
}

static void rope(struct duo *d, int size) {
	struct attention_shape k = rope_sizes[size];
	const int first = 3;
	duo_shape(d, "b %d t %d heads %d/%d x %d", k.b, k.t, k.heads, k.kv_heads, k.head_dim);
	size_t n = (size_t)k.b * k.t * (size_t)(k.heads + 2 * k.kv_heads) * k.head_dim;
	int table = make_table(d, first + k.t, k.head_dim), qkv = duo_random(d, "qkv", DUO_ACT, n, 2);
	for (int inverse = 0; inverse < 2; inverse++) {
		ON_BOTH(d, s, "rope")
		s.be->ops->rope(s.be, duo_act(s, qkv), duo_f32(s, table), k, first, inverse);
		duo_check(d, qkv, TOL_ELEMENTWISE);
		duo_follow(d, qkv);
	}
}

static const struct {
	int n, f;
} swiglu_sizes[] = {{1, 1}, {3, 7}, {17, 33}, {7, 64}, {33, 127}, {127, 24}, {5, 1023}, {3, 2048}, {4096, 3072}};
enum { LARGE = 1 };

static void swiglu(struct duo *d, int size) {
	int n = swiglu_sizes[size].n, f = swiglu_sizes[size].f;
	size_t nf = (size_t)n * f;
	duo_shape(d, "n %d f %d", n, f);
	int in = duo_random(d, "gate_up", DUO_ACT, 2 * nf, 6), out = duo_random(d, "out", DUO_ACT, nf, 1);
	int dout = duo_random(d, "dout", DUO_ACT, nf, 1), din = duo_random(d, "dgate_up", DUO_ACT, 2 * nf, 1);
	ON_BOTH(d, s, "forward")
	s.be->ops->swiglu_forward(s.be, duo_act(s, out), duo_act(s, in), n, f);
	ON_BOTH(d, s, "backward")
	s.be->ops->swiglu_backward(s.be, duo_act(s, din), duo_act(s, dout), duo_act(s, in), n, f);
	duo_check(d, out, TOL_ELEMENTWISE);
	duo_check(d, din, TOL_ELEMENTWISE);
}

const struct conformance_case cases_pointwise[] = {{"rope", COUNT(rope_sizes) - LARGE, rope, 5, LARGE},
												   {"swiglu", COUNT(swiglu_sizes) - LARGE, swiglu, 6, LARGE},
												   {0}};
