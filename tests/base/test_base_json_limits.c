/* What a JSON text would take is counted outside of strings, whether or not it is valid. */
#include "base/json_limits.h"
#include "tests/common/check.h"

#include <string.h>

static enum rv_err check(const char *text, size_t containers, size_t values, struct rv_errtext *et) {
	return rv_json_check_limits((const uint8_t *)text, strlen(text), containers, values, et);
}

static void test_counts(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	assert_int_equal(check("", 0, 0, &et), RV_OK);
	assert_int_equal(check("{\"a\":[1,2]}", 2, 2, &et), RV_OK);
	assert_int_equal(check("{\"a\":[1,2]}", 1, 2, &et), RV_E_RANGE);
	assert_string_equal(et.text, "2 arrays and objects: the limit is 1");
	assert_int_equal(check("{\"a\":[1,2]}", 2, 1, &et), RV_E_RANGE);
	assert_string_equal(et.text, "2 values: the limit is 1");
	assert_int_equal(check("[[[[", 3, 0, &et), RV_E_RANGE);
}

static void test_strings_do_not_count(void **state) {
	(void)state;
	assert_int_equal(check("\"[[,:{\\\"[[\"", 0, 0, NULL), RV_OK);
	assert_int_equal(check("\"\\\\\"[", 0, 0, NULL), RV_E_RANGE);
	assert_int_equal(check("\"never closed [[[", 0, 0, NULL), RV_OK);
	assert_int_equal(check("\"\\", 0, 0, NULL), RV_OK);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_strings_do_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
