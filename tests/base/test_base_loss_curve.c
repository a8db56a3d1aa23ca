/* loss_curve.h: a bounded curve of a run of any length. */
#include "tests/common/check.h"
#include "worker/local/loss_curve.h"

#include <math.h>

static void test_a_long_run_stays_bounded(void **state) {
	(void)state;
	struct loss_curve c = {.n = 0};
	enum { ROUNDS = 100000 };
	for (int i = 1; i <= ROUNDS; i++)
		loss_curve_add(&c, (uint64_t)i, 1.0 / i);
	json_t *list = loss_curve_json(&c);
	const size_t n = json_array_size(list);
	assert_in_range(n, LOCAL_CHART_POINTS / 2, LOCAL_CHART_POINTS);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(list, 0), 0)), 1);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(list, n - 1), 0)), ROUNDS);
	for (size_t i = 1; i + 1 < n; i++) { /* evenly spaced, but for the last */
		const json_int_t step = json_integer_value(json_array_get(json_array_get(list, i), 0)) -
								json_integer_value(json_array_get(json_array_get(list, i - 1), 0));
		assert_int_equal(step, 1 << c.halved);
	}
	json_decref(list);
}

static void test_rounds_that_are_taken_back_go(void **state) {
	(void)state;
	struct loss_curve c = {.n = 0};
	for (int i = 1; i <= 10; i++)
		loss_curve_add(&c, (uint64_t)i, i);
	loss_curve_add(&c, 11, NAN);
	assert_int_equal(c.n, 10);
	loss_curve_rewind(&c, 6);
	loss_curve_add(&c, 7, 70);
	assert_int_equal(c.n, 7);
	assert_int_equal(c.at[6].round, 7);
	assert_true(c.at[6].loss == 70);
	loss_curve_add(&c, 3, 30); /* a resumed process repeats rounds */
	assert_int_equal(c.n, 3);
	json_t *list = loss_curve_json(&c);
	assert_int_equal(json_array_size(list), 3);
	json_decref(list);
	loss_curve_rewind(&c, 0);
	list = loss_curve_json(&c);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_long_run_stays_bounded),
									   cmocka_unit_test(test_rounds_that_are_taken_back_go)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
