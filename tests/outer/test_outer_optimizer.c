/* Outer optimizers: bit for bit the formula, any slicing the same, and the published sequence of Nesterov. */
#include "outer/optimizer.h"
#include "tests/outer/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_STATES = 3, DELAY = 3 };

static float theta[LARGEST_SIZE], delta[LARGEST_SIZE], theta2[LARGEST_SIZE];
static float kept[MAX_STATES][LARGEST_SIZE], kept2[MAX_STATES][LARGEST_SIZE];
static float *const states[MAX_STATES] = {kept[0], kept[1], kept[2]};
static const struct outer_params params = {.lr = 0.7f, .momentum = 0.9f, .beta2 = 0.99f, .eps = 1e-3f, .delay = DELAY};

static void prepare(size_t n) {
	fill_normal(theta, n, n);
	fill_normal(delta, n, n + 2);
	fill_normal(kept[0], n, n + 1);
	for (size_t i = 0; i < n; i++) /* a sum of squares */
		kept[1][i] = kept[0][i] * kept[0][i];
	for (size_t i = 0; i < n; i++) /* a number of rounds */
		kept[2][i] = (float)(i % DELAY);
	memcpy(theta2, theta, sizeof theta);
	memcpy(kept2, kept, sizeof kept);
}

/* The second moment by its formula; every operation rounded by itself. */
static float second_plainly(const struct outer_optimizer *o, float v, float d) {
	volatile float d2 = d * d, rest = 1 - params.beta2, t = rest * d2;
	if (o == &outer_adagrad)
		return v + d2;
	if (o == &outer_yogi)
		return v > d2 ? v - t : v < d2 ? v + t : v;
	volatile float old = params.beta2 * v;
	return old + t;
}

static float fedopt_plainly(const struct outer_optimizer *o, size_t i) {
	volatile float t = params.momentum * kept2[0][i], rest = 1 - params.momentum, d = rest * delta[i];
	kept2[0][i] = t + d;
	kept2[1][i] = second_plainly(o, kept2[1][i], delta[i]);
	t = sqrtf(kept2[1][i]);
	t = t + params.eps;
	t = kept2[0][i] / t;
	t = params.lr * t;
	return t;
}

static float delayed_plainly(size_t i) {
	volatile float t = params.momentum * kept2[0][i], sum = kept2[1][i] + delta[i], share = delta[i] / DELAY, mean;
	bool due = i % DELAY == DELAY - 1;
	kept2[1][i] = due ? 0 : sum;
	kept2[2][i] = due ? 0 : kept2[2][i] + 1;
	if (!due)
		return params.lr * share;
	mean = sum / DELAY;
	kept2[0][i] = t + mean;
	t = params.momentum * kept2[0][i];
	t = share + t;
	return params.lr * t;
}

/* One element by the formula. */
static void step_plainly(const struct outer_optimizer *o, size_t i) {
	volatile float t;
	if (o == &outer_nesterov) {
		t = params.momentum * kept2[0][i];
		kept2[0][i] = t + delta[i];
		t = params.momentum * kept2[0][i];
		t = delta[i] + t;
		t = params.lr * t;
	} else if (o == &outer_sgd) {
		t = params.lr * delta[i];
	} else if (o == &outer_average) {
		t = delta[i];
	} else if (o == &outer_delayed_nesterov) {
		t = delayed_plainly(i);
	} else {
		t = fedopt_plainly(o, i);
	}
	theta2[i] = theta2[i] - t;
}

static void test_formula(void **state) {
	(void)state;
	for (int k = 0; outer_registry[k]; k++)
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++) {
			size_t n = awkward_sizes[s];
			prepare(n);
			outer_registry[k]->step(theta, states, delta, n, &params);
			for (size_t i = 0; i < n; i++)
				step_plainly(outer_registry[k], i);
			assert_memory_equal(theta, theta2, n * sizeof *theta);
			assert_memory_equal(kept, kept2, sizeof kept);
		}
}

static void test_any_slicing(void **state) {
	(void)state;
	for (int k = 0; outer_registry[k]; k++) {
		size_t n = LARGEST_SIZE;
		prepare(n);
		outer_registry[k]->step(theta, states, delta, n, &params);
		for (size_t at = 0, len = 1; at < n; at += len, len = len * 2 + 1) {
			len = len < n - at ? len : n - at;
			float *const slice[] = {kept2[0] + at, kept2[1] + at, kept2[2] + at};
			outer_registry[k]->step(theta2 + at, slice, delta + at, len, &params);
		}
		assert_memory_equal(theta, theta2, sizeof theta);
		assert_memory_equal(kept, kept2, sizeof kept);
	}
}

/* Constant Delta, lr .7, momentum .9: theta has moved by 1.33, 1.897, 2.407... in total; each step tends to 7 Delta. */
static void test_constant_delta(void **state) {
	(void)state;
	const double per_step[] = {1.33, 1.897, 2.4073, 2.86657};
	float t = 0, b = 0, before = 0;
	const float one = 1;
	float *const one_state[] = {&b};
	for (int i = 0; i < 400; i++) {
		before = t;
		outer_nesterov.step(&t, one_state, &one, 1, &params);
		if (i < (int)COUNT_OF(per_step))
			assert_true(fabs((double)(before - t) - per_step[i]) < 1e-5);
	}
	assert_true(fabs((double)(before - t) - 7.0) < 1e-3);
}

static void test_zero_lr_freezes_theta(void **state) {
	(void)state;
	const struct outer_params frozen = {.lr = 0, .momentum = 0.9f};
	prepare(1000);
	outer_nesterov.step(theta, states, delta, 1000, &frozen);
	outer_sgd.step(theta, NULL, delta, 1000, &frozen);
	assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
	assert_memory_not_equal(kept, kept2, sizeof kept);
}

/* sgd at 1 is average, and nesterov without momentum is sgd: bit for bit. */
static void test_special_cases(void **state) {
	(void)state;
	prepare(1000);
	outer_sgd.step(theta, NULL, delta, 1000, &(struct outer_params){.lr = 1});
	outer_average.step(theta2, NULL, delta, 1000, &params);
	assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
	prepare(1000);
	outer_sgd.step(theta, NULL, delta, 1000, &params);
	outer_nesterov.step(theta2, states, delta, 1000, &(struct outer_params){.lr = params.lr});
	assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
}

/* Every round: Nesterov, bit for bit. Every N rounds: in sum Nesterov on their mean, from where they began. */
static void test_delayed_nesterov(void **state) {
	(void)state;
	struct outer_params p = params;
	float moved[2] = {0}, b = 0;
	prepare(1000);
	memset(kept, 0, sizeof kept);
	memset(kept2, 0, sizeof kept2);
	p.delay = 1;
	for (int round = 0; round < 5; round++) {
		float *const own[] = {kept2[0], kept2[1], kept2[2]};
		outer_nesterov.step(theta, states, delta, 1000, &p);
		outer_delayed_nesterov.step(theta2, own, delta, 1000, &p);
		assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
		assert_memory_equal(kept[0], kept2[0], sizeof kept[0]);
	}
	memset(kept, 0, sizeof kept);
	p.delay = 4;
	for (int round = 0; round < 40; round++) {
		float d = sinf((float)round), mean = 0;
		outer_delayed_nesterov.step(&moved[0], states, &d, 1, &p);
		for (int k = round - 3; k <= round; k++)
			mean += sinf((float)k) / 4;
		if (round % 4 == 3) {
			float *const own[] = {&b};
			outer_nesterov.step(&moved[1], own, &mean, 1, &p);
			assert_true(fabsf(moved[0] - moved[1]) < 1e-5f);
		}
	}
}

static void test_registry(void **state) {
	(void)state;
	const struct outer_optimizer *o;
	struct rv_errtext et = {0};
	for (int i = 0; outer_registry[i]; i++) {
		assert_int_equal(outer_find(outer_registry[i]->name, &o, &et), RV_OK);
		assert_ptr_equal(o, outer_registry[i]);
	}
	assert_int_equal(outer_find("lion", &o, &et), RV_E_NOTFOUND);
	assert_string_equal(et.text, "no outer optimizer 'lion'; there are: nesterov, sgd, average, adam, yogi, adagrad, "
								 "delayed_nesterov");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formula),        cmocka_unit_test(test_any_slicing),
		cmocka_unit_test(test_constant_delta), cmocka_unit_test(test_zero_lr_freezes_theta),
		cmocka_unit_test(test_special_cases),  cmocka_unit_test(test_delayed_nesterov),
		cmocka_unit_test(test_registry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
