/* test_kernels_swiglu.c: the gated activation of `cpu` against `ref`, and at its extremes. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

struct swiglu_case {
	int n, f;
	float amplitude;
};

static const struct swiglu_case cases[] = {{1, 1, 1},   {1, 3, 1},    {7, 17, 10},  {33, 33, 1},
										   {3, 127, 1}, {2, 1023, 4}, {300, 8, 40}, {17, 64, 1e-3f}};

static void swiglu_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct swiglu_case *k = ctx;
	size_t n = (size_t)k->n * k->f;
	float *gate_up = random_floats(2 * n, 1, k->amplitude), *dout = random_floats(n, 2, 1);
	struct backend *both[] = {ref, cpu};
	float *out[2], *dgate_up[2];
	for (int i = 0; i < 2; i++) {
		out[i] = zero_floats(n);
		dgate_up[i] = random_floats(2 * n, 3, 1); /* overwritten */
		both[i]->ops->swiglu_forward(both[i], as_act(out[i]), as_act(gate_up), k->n, k->f);
		both[i]->ops->swiglu_backward(both[i], as_act(dgate_up[i]), as_act(dout), as_act(gate_up), k->n, k->f);
	}
	check_close("out", out[1], out[0], n, TOL_ELEMENTWISE);
	check_close("dgate_up", dgate_up[1], dgate_up[0], 2 * n, TOL_ELEMENTWISE);
	float *all[] = {gate_up, dout, out[0], out[1], dgate_up[0], dgate_up[1]};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void swiglu_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_variant(swiglu_body, &cases[i]);
}

/* silu is 0 far left (never NaN from 0 * infinity), the identity far right, and its slope 1/2 at
 * 0. */
static void extremes_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { F = 6 };
	float gate_up[2 * F] = {0, -1000, 1000, -100, 100, NAN, 3, 3, 3, 3, 3, 3};
	float dout[F] = {1, 1, 1, 1, 1, 1}, out[F], dgate_up[2 * F];
	const float want[F] = {0, 0, 3000, 0, 300, NAN}, want_d[2 * F] = {1.5f, 0, 3, 0, 3, NAN, 0, 0, 1000, 0, 100, NAN};
	cpu->ops->swiglu_forward(cpu, as_act(out), as_act(gate_up), 1, F);
	cpu->ops->swiglu_backward(cpu, as_act(dgate_up), as_act(dout), as_act(gate_up), 1, F);
	check_close("out", out, want, F, TOL_ELEMENTWISE);
	check_close("dgate_up", dgate_up, want_d, 2 * F, TOL_ELEMENTWISE);
}

static void extremes_are_finite_and_nan_stays(void **state) {
	(void)state;
	for_each_variant(extremes_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(swiglu_equals_ref),
									   cmocka_unit_test(extremes_are_finite_and_nan_stays)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
