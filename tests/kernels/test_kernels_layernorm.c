/* test_kernels_layernorm.c: layer normalisation of `cpu` against `ref`. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

struct norm_case {
	int n, c;
	float offset; /* added to x: a large mean beside a small spread */
};

static const struct norm_case cases[] = {{1, 1, 0},   {1, 3, 0},    {7, 17, 0},    {33, 33, 0},
										 {3, 127, 0}, {129, 64, 0}, {65, 100, 30}, {2100, 24, 0}};

struct norm_arrays {
	float *sum, *out, *mean, *rstd, *dx, *dw, *db;
};

static struct norm_arrays run(struct backend *be, const struct norm_case *k, float *a, float *b, const float *w,
							  const float *bias, float *dout) {
	size_t n = (size_t)k->n, nc = n * k->c;
	struct norm_arrays r = {zero_floats(nc),
							zero_floats(nc),
							zero_floats(n),
							zero_floats(n),
							random_floats(nc, 8, 1),
							random_floats((size_t)k->c, 9, 1),
							random_floats((size_t)k->c, 10, 1)};
	if (b)
		be->ops->residual_layernorm_forward(be, as_act(r.sum), as_act(r.out), r.mean, r.rstd, as_act(a), as_act(b), w,
											bias, k->n, k->c);
	else
		be->ops->layernorm_forward(be, as_act(r.out), r.mean, r.rstd, as_act(a), w, bias, k->n, k->c);
	be->ops->layernorm_backward(be, as_act(r.dx), r.dw, r.db, as_act(dout), as_act(b ? r.sum : a), w, r.mean, r.rstd,
								k->n, k->c);
	return r;
}

static void release(struct norm_arrays *r) {
	float *all[] = {r->sum, r->out, r->mean, r->rstd, r->dx, r->dw, r->db};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void norm_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct norm_case *k = ctx;
	size_t n = (size_t)k->n, c = (size_t)k->c, nc = n * c;
	float *a = random_floats(nc, 1, 1), *b = random_floats(nc, 2, 1), *dout = random_floats(nc, 3, 1);
	float *w = random_floats(c, 4, 1), *bias = random_floats(c, 5, 1);
	for (size_t i = 0; i < nc; i++)
		a[i] += k->offset;
	for (int residual = 0; residual < 2; residual++) {
		struct norm_arrays want = run(ref, k, a, residual ? b : NULL, w, bias, dout);
		struct norm_arrays got = run(cpu, k, a, residual ? b : NULL, w, bias, dout);
		/* One channel: the variance is 0 and any rounding of the mean is blown up by 1 /
		 * sqrt(eps). */
		double loose = 1 + (double)k->offset;
		check_close("sum", got.sum, want.sum, nc, TOL_EXACT);
		check_close("mean", got.mean, want.mean, n, TOL_REDUCTION);
		check_close("rstd", got.rstd, want.rstd, n, TOL_REDUCTION * loose);
		check_close("out", got.out, want.out, nc, TOL_REDUCTION * loose);
		check_close("dx", got.dx, want.dx, nc, TOL_REDUCTION * loose);
		check_close("dw", got.dw, want.dw, c, TOL_REDUCTION * loose);
		check_close("dbias", got.db, want.db, c, TOL_REDUCTION);
		release(&want);
		release(&got);
	}
	float *all[] = {a, b, dout, w, bias};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void layernorm_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_variant(norm_body, &cases[i]);
}

static void nan_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { N = 3, C = 37 };
	float *x = random_floats(N * C, 1, 1), *w = random_floats(C, 2, 1), *out = zero_floats(N * C);
	float mean[N], rstd[N];
	x[C + 5] = NAN;
	cpu->ops->layernorm_forward(cpu, as_act(out), mean, rstd, as_act(x), w, w, N, C);
	for (int i = 0; i < C; i++) {
		assert_false(isnan(out[i]));
		assert_true(isnan(out[C + i]));
		assert_false(isnan(out[2 * C + i]));
	}
	free(x);
	free(w);
	free(out);
}

static void nan_stays_in_its_row(void **state) {
	(void)state;
	for_each_variant(nan_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(layernorm_equals_ref), cmocka_unit_test(nan_stays_in_its_row)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
