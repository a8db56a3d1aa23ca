/* test_kernels_rmsnorm.c: root mean square normalisation of `cpu` against `ref`, and against its
 * definition. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

struct norm_case {
	int n, c;
	float eps, amplitude;
};

static const struct norm_case cases[] = {{1, 1, 1e-5f, 1},     {1, 3, 1e-6f, 1},     {7, 17, 1e-5f, 1},
										 {33, 33, 1e-5f, 30},  {3, 127, 1e-5f, 1},   {17, 1023, 1e-6f, 1},
										 {129, 64, 1e-5f, 10}, {2100, 24, 1e-5f, 1}, {5, 96, 1e-5f, 1e-3f}};

struct norm_arrays {
	float *sum, *out, *rstd, *dx, *dw;
};

static struct norm_arrays run(struct backend *be, const struct norm_case *k, float *a, float *b, const float *w,
							  float *dout) {
	size_t n = (size_t)k->n, nc = n * k->c;
	struct norm_arrays r = {zero_floats(nc), zero_floats(nc), zero_floats(n), random_floats(nc, 8, 1),
							random_floats((size_t)k->c, 9, 1)}; /* gradients accumulate */
	if (b)
		be->ops->residual_rmsnorm_forward(be, as_act(r.sum), as_act(r.out), r.rstd, as_act(a), as_act(b), w, k->eps,
										  k->n, k->c);
	else
		be->ops->rmsnorm_forward(be, as_act(r.out), r.rstd, as_act(a), w, k->eps, k->n, k->c);
	be->ops->rmsnorm_backward(be, as_act(r.dx), r.dw, as_act(dout), as_act(b ? r.sum : a), w, r.rstd, k->n, k->c);
	return r;
}

static void release(struct norm_arrays *r) {
	float *all[] = {r->sum, r->out, r->rstd, r->dx, r->dw};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void norm_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct norm_case *k = ctx;
	size_t n = (size_t)k->n, c = (size_t)k->c, nc = n * c;
	float *a = random_floats(nc, 1, k->amplitude), *b = random_floats(nc, 2, k->amplitude);
	float *dout = random_floats(nc, 3, 1), *w = random_floats(c, 4, 1);
	for (int residual = 0; residual < 2; residual++) {
		struct norm_arrays want = run(ref, k, a, residual ? b : NULL, w, dout);
		struct norm_arrays got = run(cpu, k, a, residual ? b : NULL, w, dout);
		check_close("sum", got.sum, want.sum, nc, TOL_EXACT);
		check_close("rstd", got.rstd, want.rstd, n, TOL_REDUCTION);
		check_close("out", got.out, want.out, nc, TOL_REDUCTION);
		check_close("dx", got.dx, want.dx, nc, TOL_REDUCTION);
		check_close("dw", got.dw, want.dw, c, TOL_REDUCTION);
		release(&want);
		release(&got);
	}
	float *all[] = {a, b, dout, w};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void rmsnorm_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_variant(norm_body, &cases[i]);
}

/* mean(x^2) of (3, 4, 0, 0) is 6.25, of a row of zeros 0: eps alone decides. */
static void values_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	enum { N = 2, C = 4 };
	float x[N * C] = {3, 4, 0, 0}, out[N * C], rstd[N];
	const float w[C] = {1, 2, 1, 1}, want[N * C] = {1.2f, 3.2f, 0, 0}, want_rstd[N] = {0.4f, 1000};
	struct backend *both[] = {ref, cpu};
	for (int i = 0; i < 2; i++) {
		both[i]->ops->rmsnorm_forward(both[i], as_act(out), rstd, as_act(x), w, 1e-6f, N, C);
		check_close("out", out, want, N * C, TOL_ELEMENTWISE);
		check_close("rstd", rstd, want_rstd, N, TOL_ELEMENTWISE);
	}
}

static void values_are_those_of_the_definition(void **state) {
	(void)state;
	for_each_variant(values_body, NULL);
}

static void nan_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { N = 3, C = 37 };
	float *x = random_floats(N * C, 1, 1), *w = random_floats(C, 2, 1), *out = zero_floats(N * C), rstd[N];
	x[C + 5] = NAN;
	cpu->ops->rmsnorm_forward(cpu, as_act(out), rstd, as_act(x), w, 1e-5f, N, C);
	for (int i = 0; i < N * C; i++)
		assert_int_equal(isnan(out[i]) != 0, i / C == 1);
	free(x);
	free(w);
	free(out);
}

static void nan_stays_in_its_row(void **state) {
	(void)state;
	for_each_variant(nan_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(rmsnorm_equals_ref),
									   cmocka_unit_test(values_are_those_of_the_definition),
									   cmocka_unit_test(nan_stays_in_its_row)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
