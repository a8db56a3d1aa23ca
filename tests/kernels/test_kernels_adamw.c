/* test_kernels_adamw.c: the optimizer and the gradient norm of `cpu` against `ref`, and `ref`
 * against numbers worked out by hand. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

static const size_t sizes[] = {1, 3, 17, 127, 1023, 65536, 200001};

static void adamw_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	size_t n = *(const size_t *)ctx, cut = n / 3, cut2 = n - n / 4;
	const struct decay_span spans[] = {{0, cut, true}, {cut, cut2, false}, {cut2, n, true}};
	float *p[2], *m[2], *v[2];
	struct backend *be[2] = {ref, cpu};
	for (int i = 0; i < 2; i++) {
		p[i] = random_floats(n, 1, 1);
		m[i] = zero_floats(n);
		v[i] = zero_floats(n);
		for (int64_t step = 1; step <= 4; step++) {
			const struct adamw_params a = {0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, step};
			float *g = random_floats(n, 10 + (uint64_t)step, 1);
			be[i]->ops->adamw(be[i], p[i], g, m[i], v[i], spans, 3, &a);
			free(g);
		}
	}
	check_close("p", p[1], p[0], n, TOL_ELEMENTWISE);
	check_close("m", m[1], m[0], n, TOL_ELEMENTWISE);
	check_close("v", v[1], v[0], n, TOL_ELEMENTWISE);
	for (int i = 0; i < 2; i++) {
		free(p[i]);
		free(m[i]);
		free(v[i]);
	}
}

static void adamw_equals_ref(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for_each_variant(adamw_body, &sizes[i]);
}

/* Step 1 from zero moments moves every parameter by lr (1 + wd p) whatever its gradient is: mhat =
 * g, sqrt(vhat) = |g|. */
static void first_step_is_the_sign(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	struct backend *be[2] = {ref, cpu};
	for (int i = 0; i < 2; i++) {
		float p[2] = {1, -2}, m[2] = {0}, v[2] = {0};
		const float g[2] = {5, -0.25f};
		const struct decay_span spans[] = {{0, 1, true}, {1, 2, false}};
		const struct adamw_params a = {0.1f, 0.9f, 0.999f, 0, 0.5f, 3, 1};
		be[i]->ops->adamw(be[i], p, g, m, v, spans, 2, &a);
		assert_true(fabsf(p[0] - (1 - 0.1f - 0.05f)) < 1e-6f);
		assert_true(fabsf(p[1] - (-2 + 0.1f)) < 1e-6f);
		assert_true(fabsf(m[0] - 1.5f) < 1e-6f);
		assert_true(fabsf(v[0] - 0.225f) < 1e-5f);
	}
}

static void first_step_moves_by_the_learning_rate(void **state) {
	(void)state;
	for_each_variant(first_step_is_the_sign, NULL);
}

static void sum_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	size_t n = *(const size_t *)ctx;
	float *x = random_floats(n, 1, 100);
	double want = ref->ops->sum_squares(ref, x, n), got = cpu->ops->sum_squares(cpu, x, n);
	assert_true(fabs(got - want) <= 1e-12 * want);
	assert_true(cpu->ops->sum_squares(cpu, x, 0) == 0);
	x[n / 2] = NAN;
	assert_true(isnan(cpu->ops->sum_squares(cpu, x, n)));
	free(x);
}

static void sum_squares_is_exact_to_double(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for_each_variant(sum_body, &sizes[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(adamw_equals_ref),
									   cmocka_unit_test(first_step_moves_by_the_learning_rate),
									   cmocka_unit_test(sum_squares_is_exact_to_double)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
