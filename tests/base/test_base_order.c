/* test_base_order.c: the value at a place, against a sort. */
#include "base/order.h"
#include "base/rng.h"
#include "tests/common/check.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 80, MANY = 1024 };

static int ascending(const void *a, const void *b) {
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void test_every_place_is_the_sorts(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(4, 4);
	for (int n = 1; n <= MOST; n++) {
		uint64_t values[MOST], sorted[MOST];
		double reals[MOST];
		for (int i = 0; i < n; i++) { /* few different ones, or any */
			values[i] = sorted[i] = n % 2 ? rv_rng_below(&r, 4) : rv_rng_u64(&r) >> 12;
			reals[i] = ((double)values[i] - 2) / 3; /* negative ones, and fractions */
		}
		qsort(sorted, (size_t)n, sizeof *sorted, ascending);
		for (int place = 0; place < n; place++) {
			assert_int_equal(rv_nth_u64(values, n, place), sorted[place]);
			assert_true(rv_nth(reals, n, place) == ((double)sorted[place] - 2) / 3);
		}
	}
}

/* A thousand members of a roster: by the values' own order, and with extremes. */
static void test_many_values(void **state) {
	(void)state;
	static double reals[MANY];
	for (int i = 0; i < MANY; i++)
		reals[i] = (double)((i * 389) % MANY) - MANY / 2.0;
	for (int place = 0; place < MANY; place++)
		assert_true(rv_nth(reals, MANY, place) == (double)place - MANY / 2.0);
	const double ends[] = {INFINITY, -1e308, 5e-324, -INFINITY, 0, -5e-324, 1e308};
	const double sorted[] = {-INFINITY, -1e308, -5e-324, 0, 5e-324, 1e308, INFINITY};
	for (int place = 0; place < 7; place++)
		assert_true(rv_nth(ends, 7, place) == sorted[place]);
}

/* A peer's bytes may hold any number: what comes then is one of them. */
static void test_nan_is_no_fault(void **state) {
	(void)state;
	const double values[] = {NAN, 1, NAN}, none[] = {NAN, NAN};
	for (int place = 0; place < 3; place++) {
		const double got = rv_nth(values, 3, place);
		assert_true(isnan(got) || got == 1);
	}
	assert_true(isnan(rv_nth(none, 2, 0)));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_place_is_the_sorts),
		cmocka_unit_test(test_many_values),
		cmocka_unit_test(test_nan_is_no_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
