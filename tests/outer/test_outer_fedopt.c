/* adam, yogi and adagrad against a reference in double written from the equations of arXiv
 * 2003.00295, algorithm 2, and the properties that follow from them. */
#include "outer/optimizer.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <string.h>

enum { N = 100, STEPS = 40 };

#define RELATIVE_CEILING 2e-5 /* STEPS steps, a few roundings of 2^-24 each */

static const struct outer_optimizer *const adaptive[] = {&outer_adam, &outer_yogi, &outer_adagrad};
static const struct outer_params usual = {.lr = 0.01f, .momentum = 0.9f, .beta2 = 0.99f, .eps = 1e-3f};

static float theta[N], m[N], v[N], delta[N];
static float *const states[] = {m, v};

static void begin(const struct outer_optimizer *o, const struct outer_params *p) {
	memset(m, 0, sizeof m);
	memset(v, 0, sizeof v);
	memset(theta, 0, sizeof theta);
	o->start(states, N, p);
	fill_normal(delta, N, 3);
	for (size_t i = 0; i < N; i++) /* magnitudes about tau: both terms of the denominator count */
		delta[i] *= 0x1p10f;
}

static double sign(double x) {
	return (x > 0) - (x < 0);
}

/* Algorithm 2, with Delta uphill as here: x <- x - eta m / (sqrt(v) + tau). */
static void reference(const struct outer_optimizer *o, const struct outer_params *p, double d, double *x, double *m1,
					  double *v1) {
	double beta1 = (double)p->momentum, beta2 = (double)p->beta2, d2 = d * d;
	*m1 = beta1 * *m1 + (1 - beta1) * d;
	if (o == &outer_adam)
		*v1 = beta2 * *v1 + (1 - beta2) * d2;
	else if (o == &outer_yogi)
		*v1 = *v1 - (1 - beta2) * d2 * sign(*v1 - d2);
	else
		*v1 = *v1 + d2;
	*x -= (double)p->lr * *m1 / (sqrt(*v1) + (double)p->eps);
}

static void close_to(double got, double want) {
	assert_true(fabs(got - want) <= RELATIVE_CEILING * fabs(want) + 1e-30);
}

static void test_constant_delta_follows_the_paper(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(adaptive); k++) {
		double x[N] = {0}, m1[N] = {0}, v1[N];
		begin(adaptive[k], &usual);
		for (size_t i = 0; i < N; i++)
			v1[i] = (double)usual.eps * (double)usual.eps;
		for (int s = 0; s < STEPS; s++) {
			adaptive[k]->step(theta, states, delta, N, &usual);
			for (size_t i = 0; i < N; i++) {
				reference(adaptive[k], &usual, (double)delta[i], &x[i], &m1[i], &v1[i]);
				close_to((double)theta[i], x[i]);
				close_to((double)m[i], m1[i]);
				if (adaptive[k] != &outer_yogi) /* near v = d^2 its sign turns on a rounding */
					close_to((double)v[i], v1[i]);
			}
		}
	}
}

static void test_states_start_at_tau_squared(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(adaptive); k++) {
		begin(adaptive[k], &usual);
		for (size_t i = 0; i < N; i++)
			assert_true(m[i] == 0 && v[i] == usual.eps * usual.eps);
		assert_int_equal(adaptive[k]->n_states, 2);
	}
}

/* beta1 = 0 and a tau that dwarfs every delta, v staying at tau^2: the denominator is 2 tau
 * everywhere, so the step is SGD's with lr / 2 tau. */
static void test_huge_tau_is_sgd(void **state) {
	(void)state;
	const struct outer_params p = {.lr = 2e4f, .beta2 = 0.999999f, .eps = 1e4f};
	for (size_t k = 0; k < COUNT_OF(adaptive); k++) {
		float by_sgd[N] = {0};
		begin(adaptive[k], &p);
		adaptive[k]->step(theta, states, delta, N, &p);
		outer_sgd.step(by_sgd, NULL, delta, N, &(struct outer_params){.lr = 1});
		for (size_t i = 0; i < N; i++)
			close_to((double)theta[i], (double)by_sgd[i]);
	}
}

/* A tau that vanishes: adam and adagrad without momentum move by lr times the sign, adam's v being
 * (1 - beta2) d^2. */
static void test_tiny_tau_is_the_sign(void **state) {
	(void)state;
	const struct outer_params p = {.lr = 1, .beta2 = 0, .eps = 1e-12f};
	const struct outer_optimizer *const both[] = {&outer_adam, &outer_adagrad};
	for (size_t k = 0; k < COUNT_OF(both); k++) {
		begin(both[k], &p);
		both[k]->step(theta, states, delta, N, &p);
		for (size_t i = 0; i < N; i++)
			close_to((double)theta[i], -sign((double)delta[i]));
	}
}

static void test_adagrad_only_grows(void **state) {
	(void)state;
	begin(&outer_adagrad, &usual);
	for (uint64_t s = 0; s < STEPS; s++) {
		float before[N];
		memcpy(before, v, sizeof before);
		fill_normal(delta, N, s);
		outer_adagrad.step(theta, states, delta, N, &usual);
		for (size_t i = 0; i < N; i++)
			assert_true(v[i] >= before[i]);
	}
}

/* yogi's v moves towards d^2 by (1 - beta2) d^2, whatever the distance, and stays where it is when
 * it is there. */
static void test_yogi_moves_by_the_sign(void **state) {
	(void)state;
	const float d = 0.5f, starts[] = {0.1f, 0.25f, 4};
	const float wanted[] = {0.1f + (1 - 0.75f) * 0.25f, 0.25f, 4 - (1 - 0.75f) * 0.25f};
	const struct outer_params p = {.lr = 0.1f, .beta2 = 0.75f, .eps = 1e-3f};
	for (size_t i = 0; i < COUNT_OF(starts); i++) {
		float x = 0, m1 = 0, v1 = starts[i];
		float *const one[] = {&m1, &v1};
		outer_yogi.step(&x, one, &d, 1, &p);
		assert_true(v1 == wanted[i]);
	}
}

/* Nothing learnt, nothing moved: a zero outer gradient without momentum leaves theta. */
static void test_zero_delta_rests(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(adaptive); k++) {
		const float zeros[N] = {0};
		begin(adaptive[k], &usual);
		adaptive[k]->step(theta, states, zeros, N, &usual);
		for (size_t i = 0; i < N; i++)
			assert_true(theta[i] == 0);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constant_delta_follows_the_paper),
		cmocka_unit_test(test_states_start_at_tau_squared),
		cmocka_unit_test(test_huge_tau_is_sgd),
		cmocka_unit_test(test_tiny_tau_is_the_sign),
		cmocka_unit_test(test_adagrad_only_grows),
		cmocka_unit_test(test_yogi_moves_by_the_sign),
		cmocka_unit_test(test_zero_delta_rests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
