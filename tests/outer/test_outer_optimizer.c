/* Outer optimizers: bit for bit the formula, any slicing the same, and the published sequence of Nesterov. */
#include "outer/optimizer.h"
#include "tests/outer/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float theta[LARGEST_SIZE], momentum[LARGEST_SIZE], delta[LARGEST_SIZE], theta2[LARGEST_SIZE],
	momentum2[LARGEST_SIZE];
static const struct outer_params params = {.lr = 0.7f, .momentum = 0.9f};

static void prepare(size_t n) {
	fill_normal(theta, n, n);
	fill_normal(momentum, n, n + 1);
	fill_normal(delta, n, n + 2);
	memcpy(theta2, theta, sizeof theta);
	memcpy(momentum2, momentum, sizeof momentum);
}

/* One element by the formula; every operation rounded by itself. */
static void step_plainly(const struct outer_optimizer *o, size_t i) {
	volatile float t;
	if (o == &outer_nesterov) {
		t = params.momentum * momentum2[i];
		momentum2[i] = t + delta[i];
		t = params.momentum * momentum2[i];
		t = delta[i] + t;
		t = params.lr * t;
	} else if (o == &outer_sgd) {
		t = params.lr * delta[i];
	} else {
		t = delta[i];
	}
	theta2[i] = theta2[i] - t;
}

static void test_formula(void **state) {
	(void)state;
	for (int k = 0; outer_registry[k]; k++)
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++) {
			size_t n = awkward_sizes[s];
			prepare(n);
			float *const states[] = {momentum};
			outer_registry[k]->step(theta, states, delta, n, &params);
			for (size_t i = 0; i < n; i++)
				step_plainly(outer_registry[k], i);
			assert_memory_equal(theta, theta2, n * sizeof *theta);
			assert_memory_equal(momentum, momentum2, n * sizeof *momentum);
		}
}

static void test_any_slicing(void **state) {
	(void)state;
	for (int k = 0; outer_registry[k]; k++) {
		size_t n = LARGEST_SIZE;
		prepare(n);
		float *const states[] = {momentum};
		outer_registry[k]->step(theta, states, delta, n, &params);
		for (size_t at = 0, len = 1; at < n; at += len, len = len * 2 + 1) {
			len = len < n - at ? len : n - at;
			float *const slice[] = {momentum2 + at};
			outer_registry[k]->step(theta2 + at, slice, delta + at, len, &params);
		}
		assert_memory_equal(theta, theta2, sizeof theta);
		assert_memory_equal(momentum, momentum2, sizeof momentum);
	}
}

/* Constant Delta, lr .7, momentum .9: theta has moved by 1.33, 1.897, 2.407... in total; each step tends to 7 Delta. */
static void test_constant_delta(void **state) {
	(void)state;
	const double per_step[] = {1.33, 1.897, 2.4073, 2.86657};
	float t = 0, b = 0, before = 0;
	const float one = 1;
	float *const states[] = {&b};
	for (int i = 0; i < 400; i++) {
		before = t;
		outer_nesterov.step(&t, states, &one, 1, &params);
		if (i < (int)COUNT_OF(per_step))
			assert_true(fabs((double)(before - t) - per_step[i]) < 1e-5);
	}
	assert_true(fabs((double)(before - t) - 7.0) < 1e-3);
}

static void test_zero_lr_freezes_theta(void **state) {
	(void)state;
	const struct outer_params frozen = {.lr = 0, .momentum = 0.9f};
	prepare(1000);
	float *const states[] = {momentum};
	outer_nesterov.step(theta, states, delta, 1000, &frozen);
	outer_sgd.step(theta, NULL, delta, 1000, &frozen);
	assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
	assert_memory_not_equal(momentum, momentum2, 1000 * sizeof *momentum);
}

/* sgd at 1 is average, and nesterov without momentum is sgd: bit for bit. */
static void test_special_cases(void **state) {
	(void)state;
	prepare(1000);
	outer_sgd.step(theta, NULL, delta, 1000, &(struct outer_params){.lr = 1});
	outer_average.step(theta2, NULL, delta, 1000, &params);
	assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
	prepare(1000);
	float *const states[] = {momentum};
	outer_sgd.step(theta, NULL, delta, 1000, &params);
	outer_nesterov.step(theta2, states, delta, 1000, &(struct outer_params){.lr = params.lr});
	assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
}

static void test_registry(void **state) {
	(void)state;
	const struct outer_optimizer *o;
	struct rv_errtext et = {0};
	for (int i = 0; outer_registry[i]; i++) {
		assert_int_equal(outer_find(outer_registry[i]->name, &o, &et), RV_OK);
		assert_ptr_equal(o, outer_registry[i]);
	}
	assert_int_equal(outer_find("adam", &o, &et), RV_E_NOTFOUND);
	assert_string_equal(et.text, "no outer optimizer 'adam'; there are: nesterov, sgd, average");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formula),        cmocka_unit_test(test_any_slicing),
		cmocka_unit_test(test_constant_delta), cmocka_unit_test(test_zero_lr_freezes_theta),
		cmocka_unit_test(test_special_cases),  cmocka_unit_test(test_registry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
