/* What is usual among a few figures of which one or two are wrong, and what owners measure put
 * together. */
#include <float.h>
#include <math.h>

#include "coordinator/service/contributions.h"
#include "coordinator/service/robust.h"
#include "tests/common/check.h"

static void near(double got, double want) {
	assert_true(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)));
}

static void test_median(void **state) {
	(void)state;
	near(robust_median((double[]){3, 1, 2}, 3), 2);
	near(robust_median((double[]){4, 1, 3, 2}, 4), 2.5);
	near(robust_median((double[]){DBL_MAX, DBL_MAX}, 2), DBL_MAX);
	near(robust_median((double[]){7}, 1), 7);
	near(robust_median(NULL, 0), 0);
}

static void test_who_is_far(void **state) {
	(void)state;
	const double one_trains_on_noise[] = {1.52, 1.56, 5.5, 1.49}, spread[] = {1.2, 1.6, 2.1, 2.6, 3.1};
	for (int i = 0; i < 4; i++)
		assert_int_equal(robust_is_far(one_trains_on_noise, 4, i, 0.5), i == 2);
	for (int i = 0; i < 5; i++)
		assert_false(robust_is_far(spread, 5, i, 0.5));
	const double alike[] = {2, 2, 2, 2.4}, low[] = {2, 2, 2.1, 0.3};
	assert_false(robust_is_far(alike, 4, 3, 0.5)); /* nothing to compare with is no reason to name somebody */
	assert_true(robust_is_far(low, 4, 3, 0.5));
	assert_false(robust_is_far((double[]){1, 100}, 2, 1, 0.5));
	assert_true(robust_is_far((double[]){1, 100, 1}, 3, 1, 0.5));
}

static const uint8_t all[NET_MAX_ROW];

/* Owner o: the last of four members is ten times as large and points away. */
static struct report owner(void) {
	struct report r = {.n_measured = 4, .mean2 = 4};
	for (int i = 0; i < 4; i++)
		r.measured[i] = (struct report_measured){.norm2 = 9, .dot = 3};
	r.measured[3] = (struct report_measured){.norm2 = 900, .dot = -30, .clipped = 5};
	return r;
}

static void check_figures(const struct contribution_figures *c) {
	for (int i = 0; i < 4; i++) {
		assert_true(c[i].measured);
		near(c[i].norm, i == 3 ? 10 : 1);
		near(c[i].cosine, i == 3 ? -0.5 : 0.5);
		near(c[i].clipped, i == 3 ? 0.5 : 0);
	}
}

static void test_what_owners_measured(void **state) {
	(void)state;
	struct report a = owner(), b = owner(), c = owner(), silent = {.n_measured = 0};
	struct contribution_figures out[NET_MAX_ROW];
	const uint32_t owned[] = {10, 10, 10, 10};
	contributions_of((const struct report *[]){&a, &b, &c, &silent}, owned, 4, all, 4, out);
	check_figures(out);
	/* A lying owner, whatever it says. */
	for (int i = 0; i < 4; i++)
		c.measured[i] = (struct report_measured){.norm2 = FLT_MAX, .dot = i < 3 ? -FLT_MAX : FLT_MAX, .clipped = 1000};
	c.mean2 = FLT_MAX;
	contributions_of((const struct report *[]){&a, &b, &c, &silent}, owned, 4, all, 4, out);
	check_figures(out);
	c.mean2 = 0;
	c.measured[0].norm2 = c.measured[1].norm2 = c.measured[2].norm2 = 0;
	contributions_of((const struct report *[]){&a, &b, &c}, owned, 3, all, 4, out);
	check_figures(out);
}

static void test_who_measured_nothing(void **state) {
	(void)state;
	struct report a = owner(), other = owner();
	struct contribution_figures out[NET_MAX_ROW];
	other.n_measured = 3; /* of another roster */
	contributions_of((const struct report *[]){&a, &other}, (uint32_t[]){0, 7}, 2, all, 4, out);
	for (int i = 0; i < 4; i++)
		assert_false(out[i].measured);
	struct report zeros = {.n_measured = 4};
	contributions_of((const struct report *[]){&zeros}, (uint32_t[]){3}, 1, all, 4, out);
	for (int i = 0; i < 4; i++) {
		near(out[i].norm, 0);
		near(out[i].cosine, 0);
	}
	zeros.measured[2].norm2 = 1; /* the only one that says anything */
	contributions_of((const struct report *[]){&zeros}, (uint32_t[]){3}, 1, all, 4, out);
	near(out[2].norm, CONTRIBUTION_NORM_MAX);
}

/* One of four sends every fifth chunk. Two of the owners got none of it, and the third a limited
 * one: they do not make it nothing. One that sends zeros is seen as such. */
static void test_a_part_is_judged_by_those_that_have_some(void **state) {
	(void)state;
	const uint8_t parts[NET_MAX_ROW] = {[3] = 5};
	struct report a = owner(), b = owner(), c = owner();
	struct contribution_figures out[NET_MAX_ROW];
	const struct report *owners[] = {&a, &b, &c};
	const uint32_t owned[] = {10, 10, 10};
	a.measured[3] = b.measured[3] = (struct report_measured){.norm2 = 0};
	c.measured[3] = (struct report_measured){.norm2 = 9, .dot = 3, .clipped = 2};
	contributions_of(owners, owned, 3, parts, 4, out);
	assert_true(out[3].measured);
	near(out[3].norm, 1);
	near(out[3].cosine, 0.5);
	near(out[3].clipped, 1); /* both of its two chunks */
	c.measured[3] = (struct report_measured){.norm2 = 0};
	contributions_of(owners, owned, 3, parts, 4, out);
	assert_true(out[3].measured);
	near(out[3].norm, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_who_is_far),
		cmocka_unit_test(test_what_owners_measured),
		cmocka_unit_test(test_who_measured_nothing),
		cmocka_unit_test(test_a_part_is_judged_by_those_that_have_some),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
