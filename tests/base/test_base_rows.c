/* test_base_rows.c: the layout of a roster in rows. */
#include "base/rows.h"

#include "tests/common/check.h"

static void test_up_to_the_size_there_is_one_row(void **state) {
	(void)state;
	for (int size = 2; size <= ROWS_MAX_LENGTH; size++)
		for (int n = 1; n <= size; n++)
			assert_int_equal(rows_choose(n, size), 1);
}

static void test_more_are_laid_out_in_a_square(void **state) {
	(void)state;
	const struct {
		int n, size, rows;
	} cases[] = {{4, 2, 2},     {9, 3, 3},     {16, 4, 4},     {16, 8, 4},     {65, 64, 8},
				 {100, 64, 10}, {256, 64, 16}, {1000, 64, 32}, {1024, 64, 32}, {9, 2, 5},
				 {9, 8, 2},     {11, 8, 2},    {12, 8, 3},     {15, 7, 3},     {5, 4, 2}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(rows_choose(cases[i].n, cases[i].size), cases[i].rows);
}

/* For every roster and size: rows cover the roster in order, differ by one at most, and keep within
 * the bounds on which arrays rely. */
static void test_rows_cover_every_roster(void **state) {
	(void)state;
	for (int size = 2; size <= ROWS_MAX_LENGTH; size++)
		for (int n = 1; n <= ROWS_MAX_ROSTER; n++) {
			const int rows = rows_choose(n, size);
			int next = 0;
			assert_in_range(rows, 1, ROWS_MAX);
			for (int r = 0; r < rows; r++) {
				const int length = rows_length(n, rows, r);
				assert_int_equal(rows_first(n, rows, r), next);
				assert_in_range(length, n / rows, n / rows + 1);
				assert_in_range(length, 1, ROWS_MAX_LENGTH);
				assert_true(length <= size || rows == ROWS_MAX);
				assert_true(length >= ROWS_LEAST_LENGTH || size < 7 || rows == 1);
				next += length;
			}
			assert_int_equal(next, n);
		}
}

static void test_the_shortest_row_is_known(void **state) {
	(void)state;
	assert_int_equal(rows_shortest(64), 8);
	assert_int_equal(rows_shortest(7), 4);
	assert_int_equal(rows_shortest(6), 3);
	assert_int_equal(rows_shortest(2), 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_up_to_the_size_there_is_one_row),
		cmocka_unit_test(test_more_are_laid_out_in_a_square),
		cmocka_unit_test(test_rows_cover_every_roster),
		cmocka_unit_test(test_the_shortest_row_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
