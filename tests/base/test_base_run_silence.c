/* What follows from silence-ms: the values, their bounds, and that --help and --check state the
 * same ones. */

#include "base/run_silence.h"
#include "tests/common/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct run_silence silence_of(const char *ms) {
	struct run_config c;
	run_config_defaults(&c);
	assert_int_equal(rv_options_set(run_config_options, &c, "silence-ms", ms, NULL), RV_OK);
	return run_silence_of(&c);
}

static void test_all_follow_from_one(void **state) {
	(void)state;
	struct run_silence one = silence_of("1000");
	assert_int_equal(one.silent, 1000);
	assert_int_equal(one.report, 400);
	assert_int_equal(one.ping, 250);
	assert_int_equal(one.withheld, 2000);
	assert_int_equal(one.gather, 125);
	assert_int_equal(one.dead, 2500);
	assert_int_equal(one.coordinator, 2500);
}

/* Whatever the setting: a report or PING may be lost and the next one be late before anybody is
 * suspected, and who is not waited for is not dead yet. */
static void test_what_must_hold_between_them(void **state) {
	(void)state;
	static const char *const settings[] = {"250", "251", "999", "1000", "4000", "5000", "60000", "3600000"};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		struct run_silence s = silence_of(settings[i]);
		assert_true(s.report > 0 && 5 * s.report <= 2 * s.silent + 5 && s.report <= 2000);
		assert_true(s.ping > 0 && 4 * s.ping <= s.silent);
		assert_true(s.silent < s.withheld && s.withheld < s.dead);
		assert_in_range(s.gather, 50, 1000);
		assert_in_range(s.coordinator, 2000, 10000);
	}
}

/* The help of the option says what follows at the default. */
static void test_help_states_the_defaults(void **state) {
	(void)state;
	struct run_config c;
	char number[32];
	run_config_defaults(&c);
	const struct run_silence s = run_silence_of(&c);
	const struct rv_option *o = run_config_options;
	while (strcmp(o->name, "silence-ms") != 0)
		o++;
	const int64_t values[] = {c.silence_ms, s.report, s.ping, s.withheld, s.gather, s.dead};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		snprintf(number, sizeof number, "%" PRId64, values[i]);
		assert_non_null(strstr(o->help, number));
	}
}

/* Comment lines only: a configuration with them parses back. */
static void test_printed_text_is_comments(void **state) {
	(void)state;
	struct run_config c, again;
	char text[RUN_SILENCE_TEXT_BYTES];
	run_config_defaults(&c);
	c.silence_ms = 3600000;
	run_silence_print(&c, text);
	assert_non_null(strstr(text, "# from silence-ms = 3600000 follow:\n"));
	assert_non_null(strstr(text, "dead after 9000000 ms\n"));
	assert_int_equal(run_config_parse(&again, "text", text, NULL), RV_OK);
	assert_int_equal(again.silence_ms, 4000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_follow_from_one),
		cmocka_unit_test(test_what_must_hold_between_them),
		cmocka_unit_test(test_help_states_the_defaults),
		cmocka_unit_test(test_printed_text_is_comments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
