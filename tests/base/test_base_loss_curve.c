/* loss_curve.h: a bounded curve of a run of any length, and its text. */
#include "base/loss_curve.h"
#include "tests/common/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void test_a_long_run_stays_bounded(void **state) {
	(void)state;
	struct loss_curve c = {.n = 0};
	enum { ROUNDS = 100000 };
	for (int i = 1; i <= ROUNDS; i++)
		loss_curve_add(&c, (uint64_t)i, 1.0 / i);
	json_t *list = loss_curve_json(&c);
	const size_t n = json_array_size(list);
	assert_in_range(n, LOSS_CURVE_POINTS / 2, LOSS_CURVE_POINTS);
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

/* Returns what reading `text` gives. */
static enum rv_err parse(const char *text, struct loss_curve *out) {
	struct rv_errtext et = {0};
	const enum rv_err e = loss_curve_parse(text, out, &et);
	assert_int_equal(e == RV_OK, et.text[0] == '\0');
	assert_true(e == RV_OK || (out->n == 0 && out->seen == 0));
	return e;
}

static void test_a_text_gives_the_points_again(void **state) {
	(void)state;
	static char text[LOSS_CURVE_TEXT_BYTES], again[LOSS_CURVE_TEXT_BYTES];
	static struct loss_point before[LOSS_CURVE_POINTS], after[LOSS_CURVE_POINTS];
	static const int lengths[] = {0, 1, 2, LOSS_CURVE_POINTS - 1, LOSS_CURVE_POINTS, 5000};
	for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
		struct loss_curve c = {.n = 0}, read;
		for (int i = 1; i <= lengths[k]; i++)
			loss_curve_add(&c, UINT64_MAX - 5000 + (uint64_t)i, 1.0 / i);
		loss_curve_print(&c, text);
		assert_int_equal(parse(text, &read), RV_OK);
		const int n = loss_curve_points(&c, before), m = loss_curve_points(&read, after);
		assert_true(n < LOSS_CURVE_POINTS ? m == n : m > LOSS_CURVE_POINTS / 2);
		assert_true(n == 0 || after[m - 1].round == before[n - 1].round);
		loss_curve_print(&read, again);
		assert_true(n == LOSS_CURVE_POINTS || strcmp(text, again) == 0);
		for (int i = lengths[k] + 1; i <= 5100; i++) /* it goes on */
			loss_curve_add(&read, UINT64_MAX - 5100 + (uint64_t)i, 1);
		assert_in_range(read.n, 1, LOSS_CURVE_POINTS - 1);
	}
}

static void test_texts_of_anybody(void **state) {
	(void)state;
	static char text[LOSS_CURVE_TEXT_BYTES];
	struct loss_curve c = {.n = 0};
	assert_int_equal(parse("", &c), RV_OK);
	assert_int_equal(parse("rivulet-loss 1\n3 2.5\n4 1e6\n", &c), RV_OK);
	assert_int_equal(c.n, 2);
	static const char *const refused[] = {
		"rivulet-loss 2\n",        "rivulet-loss 1",          "3 2.5\n",
		"rivulet-loss 1\n3",       "rivulet-loss 1\n3 2",     "rivulet-loss 1\n3 2.5\n3 2\n",
		"rivulet-loss 1\n3 0\n",   "rivulet-loss 1\n3 nan\n", "rivulet-loss 1\n3 -1\n",
		"rivulet-loss 1\n3 inf\n", "rivulet-loss 1\n3 1e7\n", "rivulet-loss 1\n\n",
		"rivulet-loss 1\n3 2 1\n", "rivulet-loss 1\n3\n2\n"};
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (parse(refused[i], &c) != RV_E_INVALID)
			fail_msg("accepted: %s", refused[i]);
	size_t n = (size_t)snprintf(text, sizeof text, "rivulet-loss 1\n");
	for (int i = 0; i <= LOSS_CURVE_POINTS; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%d 1\n", i);
	assert_int_equal(parse(text, &c), RV_E_INVALID); /* one too many */
	loss_curve_add(&c, 1, 1e300);
	loss_curve_add(&c, 2, -1);
	loss_curve_print(&c, text);
	assert_int_equal(parse(text, &c), RV_OK);
	assert_true(c.at[0].loss == LOSS_CURVE_MOST && c.at[1].loss > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_long_run_stays_bounded), cmocka_unit_test(test_rounds_that_are_taken_back_go),
		cmocka_unit_test(test_a_text_gives_the_points_again), cmocka_unit_test(test_texts_of_anybody)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
