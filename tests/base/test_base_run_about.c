/* run_about.h: what an operator says of a run, on its way to those who may join. */
#include "base/run_about.h"
#include "base/run_config.h"
#include "tests/common/check.h"

#include <string.h>

static void test_it_comes_back_before_a_configuration(void **state) {
	(void)state;
	const struct run_about a = {.name = "Perl in prose",
								.purpose = "A small model that explains Perl; C# and a=b are fine.",
								.operator_name = "Ada <ada@example.org>",
								.model_license = "Apache-2.0",
								.round_s = 12.5,
								.text_bytes = 5000000000,
								.text_least_bytes = 8390656};
	struct run_about b;
	struct run_config run;
	char text[RUN_ABOUT_BYTES + 64];
	assert_ok(run_about_check(&a, &et));
	run_about_print(&a, text);
	strcat(text, "rounds = 7\n#: purpose = of no use here\n");
	assert_string_equal(run_about_skip(text), "rounds = 7\n#: purpose = of no use here\n");
	assert_string_equal(run_about_skip("#: run-name = cut off"), "");
	run_about_read(text, &b);
	assert_string_equal(b.name, a.name);
	assert_string_equal(b.purpose, a.purpose);
	assert_string_equal(b.operator_name, a.operator_name);
	assert_string_equal(b.text_license, "");
	assert_string_equal(b.model_license, a.model_license);
	assert_true(b.round_s == 12.5);
	assert_int_equal(b.text_bytes, a.text_bytes);
	assert_int_equal(b.text_least_bytes, a.text_least_bytes);
	assert_ok(run_config_parse(&run, "test", text, &et)); /* comments, to older programs */
	assert_int_equal(run.rounds, 7);
}

/* A coordinator may send anything. */
static void test_what_comes_is_bounded_and_clean(void **state) {
	(void)state;
	struct run_about a;
	char text[4096] =
		"#: purpose = \x1b[2Jboo\n#: unknown = x\n#: operator\n#: round-seconds = -1\n#: text-bytes = -1\n"
		"#: text-least-bytes = 99999999999999999999\n#: run-name = ";
	size_t n = strlen(text);
	memset(text + n, 'x', 500);
	text[n + 500] = '\0';
	run_about_read(text, &a);
	assert_string_equal(a.purpose, "?[2Jboo");
	assert_string_equal(a.operator_name, "");
	assert_int_equal(strlen(a.name), sizeof a.name - 1);
	assert_true(a.round_s == 0);
	assert_int_equal(a.text_bytes, 0);
	assert_int_equal(a.text_least_bytes, 0);
	run_about_read("", &a);
	assert_string_equal(a.name, "");
}

static void test_what_could_not_be_read_back_is_refused(void **state) {
	(void)state;
	static const char *const bad[] = {"two\nlines", "a #comment", "#comment", " blank", "blank ", "\x1b[2J", "\xff"};
	struct rv_errtext why;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct run_about a = {.round_s = 0};
		strcpy(a.purpose, bad[i]);
		assert_int_equal(run_about_check(&a, &why), RV_E_INVALID);
		assert_non_null(strstr(why.text, "purpose"));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_it_comes_back_before_a_configuration),
									   cmocka_unit_test(test_what_comes_is_bounded_and_clean),
									   cmocka_unit_test(test_what_could_not_be_read_back_is_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
