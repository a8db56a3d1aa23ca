/* Outer optimizers: bit for bit the formula, any slicing the same, and the published sequence of
 * Nesterov. */
#include "outer/optimizer.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STATES = 2, DELAY = 3 };

static float theta[LARGEST_SIZE], delta[LARGEST_SIZE], theta2[LARGEST_SIZE];
static float kept[MAX_STATES][LARGEST_SIZE], kept2[MAX_STATES][LARGEST_SIZE];
static float *const states[MAX_STATES] = {kept[0], kept[1]};
static const struct outer_params params = {.lr = 0.7f, .momentum = 0.9f, .beta2 = 0.99f, .eps = 1e-3f, .delay = DELAY};

static void prepare(size_t n) {
	fill_normal(theta, n, n);
	fill_normal(delta, n, n + 2);
	fill_normal(kept[0], n, n + 1);
	for (size_t i = 0; i < n; i++) /* a sum of squares */
		kept[1][i] = kept[0][i] * kept[0][i];
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

static float delayed_plainly(size_t i, uint64_t turn) {
	volatile float t = params.momentum * kept2[0][i], sum = kept2[1][i] + delta[i], share = delta[i] / DELAY, mean;
	bool due = turn % DELAY == DELAY - 1;
	kept2[1][i] = due ? 0 : sum;
	if (!due)
		return params.lr * share;
	mean = sum / DELAY;
	kept2[0][i] = t + mean;
	t = params.momentum * kept2[0][i];
	t = share + t;
	return params.lr * t;
}

/* One element by the formula. */
static void step_plainly(const struct outer_optimizer *o, size_t i, uint64_t turn) {
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
		t = delayed_plainly(i, turn);
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
			for (struct outer_params p = params; p.turn < DELAY; p.turn++) {
				outer_registry[k]->step(theta, states, delta, n, &p);
				for (size_t i = 0; i < n; i++)
					step_plainly(outer_registry[k], i, p.turn);
				if (memcmp(theta, theta2, n * sizeof *theta) != 0 || memcmp(kept, kept2, sizeof kept) != 0)
					fail_msg("%s: not the step that step_plainly has for it", outer_registry[k]->name);
			}
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
			float *const slice[] = {kept2[0] + at, kept2[1] + at};
			outer_registry[k]->step(theta2 + at, slice, delta + at, len, &params);
		}
		assert_memory_equal(theta, theta2, sizeof theta);
		assert_memory_equal(kept, kept2, sizeof kept);
	}
}

/* Constant Delta, lr .7, momentum .9: theta has moved by 1.33, 1.897, 2.407... in total; each step
 * tends to 7 Delta. */
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

/* Every round: Nesterov, bit for bit. Every N rounds: in sum Nesterov on their mean, from where
 * they began. */
static void test_delayed_nesterov(void **state) {
	(void)state;
	struct outer_params p = params;
	float moved[2] = {0}, b = 0;
	prepare(1000);
	memset(kept, 0, sizeof kept);
	memset(kept2, 0, sizeof kept2);
	p.delay = 1;
	for (int round = 0; round < 5; round++) {
		float *const own[] = {kept2[0], kept2[1]};
		outer_nesterov.step(theta, states, delta, 1000, &p);
		outer_delayed_nesterov.step(theta2, own, delta, 1000, &p);
		assert_memory_equal(theta, theta2, 1000 * sizeof *theta);
		assert_memory_equal(kept[0], kept2[0], sizeof kept[0]);
	}
	memset(kept, 0, sizeof kept);
	p.delay = 4;
	for (int round = 0; round < 40; round++) {
		float d = sinf((float)round), mean = 0;
		p.turn = (uint64_t)round;
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
	for (int i = 0; outer_registry[i]; i++)
		assert_string_equal(outer_registry[i]->name, outer_facts[i].name);
	assert_ptr_equal(outer_registry[OUTER_adagrad], &outer_adagrad);
}

/* Writes what two steps along the same gradient make of (1, -2) into `out` (2). */
static void step_twice(const struct outer_optimizer *o, const struct outer_params *p, double times, float *out) {
	float memory[4][2] = {{0}}, *vectors_of_state[4] = {memory[0], memory[1], memory[2], memory[3]};
	const float gradient[2] = {(float)(0.25 * times), (float)(-0.5 * times)};
	out[0] = 1;
	out[1] = -2;
	if (o->start)
		o->start(vectors_of_state, 2, p);
	for (int step = 0; step < 2; step++)
		o->step(out, vectors_of_state, gradient, 2, p);
}

/* The facts of base/outer_optimizers.def against the code: a parameter that an optimizer does not
 * have changes nothing, one that it has does; and what is linear moves twice as far by twice the
 * gradient. */
static void test_facts(void **state) {
	(void)state;
	const struct outer_params usual = {.lr = 0.5f, .momentum = 0.75f, .beta2 = 0.5f, .eps = 0.125f, .delay = 1};
	for (int i = 0; outer_registry[i]; i++) {
		const unsigned facts = outer_facts[i].facts;
		const struct {
			unsigned fact;
			struct outer_params params;
		} others[] = {
			{OUTER_HAS_LR, {.lr = 0.25f, .momentum = 0.75f, .beta2 = 0.5f, .eps = 0.125f, .delay = 1}},
			{OUTER_HAS_MOMENTUM, {.lr = 0.5f, .momentum = 0.5f, .beta2 = 0.5f, .eps = 0.125f, .delay = 1}},
			{OUTER_HAS_BETA2, {.lr = 0.5f, .momentum = 0.75f, .beta2 = 0.25f, .eps = 0.125f, .delay = 1}},
			{OUTER_ADAPTIVE, {.lr = 0.5f, .momentum = 0.75f, .beta2 = 0.5f, .eps = 0.25f, .delay = 1}},
			{OUTER_DELAYS, {.lr = 0.5f, .momentum = 0.75f, .beta2 = 0.5f, .eps = 0.125f, .delay = 2}},
		};
		float moved[2], other[2];
		step_twice(outer_registry[i], &usual, 1, moved);
		for (size_t k = 0; k < COUNT_OF(others); k++) {
			step_twice(outer_registry[i], &others[k].params, 1, other);
			assert_int_equal(memcmp(moved, other, sizeof moved) != 0, (facts & others[k].fact) != 0);
		}
		step_twice(outer_registry[i], &usual, 2, other);
		const bool twice = other[0] - 1 == 2 * (moved[0] - 1) && other[1] + 2 == 2 * (moved[1] + 2);
		assert_true(twice || !(facts & OUTER_LINEAR));
		assert_true(!twice || !(facts & OUTER_ADAPTIVE));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formula),        cmocka_unit_test(test_any_slicing),
		cmocka_unit_test(test_constant_delta), cmocka_unit_test(test_zero_lr_freezes_theta),
		cmocka_unit_test(test_special_cases),  cmocka_unit_test(test_delayed_nesterov),
		cmocka_unit_test(test_registry),       cmocka_unit_test(test_facts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
