/* Numbers in query strings and form bodies. */
#include <string.h>

#include "net/http_server/query.h"
#include "tests/common/check.h"

static void expect_number(const char *text, const char *name, uint64_t want) {
	uint64_t got = 12345;
	assert_int_equal(query_number(text, strlen(text), name, &got), QUERY_NUMBER);
	assert_true(got == want);
}

static void expect(const char *text, const char *name, enum query_result want) {
	uint64_t got;
	assert_int_equal(query_number(text, strlen(text), name, &got), want);
}

static void test_numbers(void **state) {
	(void)state;
	expect_number("after=0", "after", 0);
	expect_number("after=18", "after", 18);
	expect_number("after=007", "after", 7);
	expect_number("member=3&banned=1", "member", 3);
	expect_number("member=3&banned=1", "banned", 1);
	expect_number("x=y&&after=9&", "after", 9);
	expect_number("after=9999999999999999999", "after", UINT64_C(9999999999999999999));
}

static void test_absent(void **state) {
	(void)state;
	uint64_t v;
	assert_int_equal(query_number(NULL, 0, "after", &v), QUERY_ABSENT);
	expect("", "after", QUERY_ABSENT);
	expect("&&&", "after", QUERY_ABSENT);
	expect("afte=1&afterwards=2&before=3", "after", QUERY_ABSENT);
	assert_int_equal(query_number("after=1", 3, "after", &v), QUERY_ABSENT); /* no further than it is long */
}

static void test_invalid(void **state) {
	(void)state;
	static const char *const texts[] = {"after",         "after=",         "after=x",     "after=-1",
										"after=+1",      "after= 1",       "after=1 ",    "after=1.0",
										"after=0x10",    "after=1&after=", "after=%31",   "after=10000000000000000000",
										"after=&x=1",    "after==1",       "after&x=1",   "x=1&after=1&after=1",
										"after=1&after", "after=\xb2",     "after=1\n&x", "x&after=1;y=2"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		expect(texts[i], "after", QUERY_INVALID);
	uint64_t v;
	assert_int_equal(query_number("after=1\0", 8, "after", &v), QUERY_INVALID);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_invalid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
