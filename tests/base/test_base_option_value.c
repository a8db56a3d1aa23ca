/* Values as text: every type, its units, its limits, and what is refused. */
#include "base/option_value.h"

#include "tests/base/demo_options.h"
#include "tests/common/check.h"

#include <math.h>
#include <string.h>

static enum rv_err set(struct demo *d, const char *name, const char *text, struct rv_errtext *et) {
	return rv_options_set(demo_options, d, name, text, et);
}

static void whole_numbers(void **state) {
	(void)state;
	struct demo d = {0};
	assert_int_equal(set(&d, "free-int", "-12", NULL), RV_OK);
	assert_int_equal(d.free_int, -12);
	assert_int_equal(set(&d, "free-int", "9223372036854775807", NULL), RV_OK);
	assert_true(d.free_int == INT64_MAX);
	assert_int_equal(set(&d, "free-int", "9223372036854775808", NULL), RV_E_RANGE);
	assert_int_equal(set(&d, "free-int", "-9223372036854775808", NULL), RV_E_RANGE); /* means "not set" */
	static const char *const bad[] = {"", " 1", "1 ", "1.0", "1e3", "0x10", "1k", "--1", "+", "nan", "1\n"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(set(&d, "free-int", bad[i], NULL), RV_E_INVALID);
	assert_true(d.free_int == INT64_MAX); /* a refused value changes nothing */
}

static void ranges_are_inclusive_and_named(void **state) {
	(void)state;
	struct demo d = {0};
	struct rv_errtext et = {0};
	assert_int_equal(set(&d, "rounds", "1", NULL), RV_OK);
	assert_int_equal(set(&d, "rounds", "100000", NULL), RV_OK);
	assert_int_equal(set(&d, "rounds", "0", &et), RV_E_RANGE);
	assert_string_equal(et.text, "rounds = 0: must be in [1, 100000]");
	assert_int_equal(set(&d, "chunk-bytes", "2GiB", &et), RV_E_RANGE);
	assert_string_equal(et.text, "chunk-bytes = 2GiB: must be in [1B, 1GiB]");
	assert_int_equal(set(&d, "timeout-ms", "2h", &et), RV_E_RANGE);
	assert_string_equal(et.text, "timeout-ms = 2h: must be in [1ms, 1h]");
	assert_int_equal(set(&d, "lr", "1.5", &et), RV_E_RANGE);
	assert_string_equal(et.text, "lr = 1.5: must be in [1e-09, 1]");
	const struct rv_option wide = {.name = "seed", .type = RV_OPT_INT, .max = 0x1p53};
	char range[64];
	rv_option_range_text(&wide, range, sizeof range);
	assert_string_equal(range, "[0, 9007199254740992]");
}

static void sizes_have_units(void **state) {
	(void)state;
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {{"4096", 4096},     {"64KiB", 65536},    {"64K", 65536},      {"64KB", 64000},     {"64 kB", 64000},
				{"1.5MB", 1500000}, {"1.5MiB", 1572864}, {"0.5GiB", 1 << 29}, {"1GB", 1000000000}, {"10B", 10}};
	struct demo d = {0};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(set(&d, "chunk-bytes", good[i].text, NULL), RV_OK);
		assert_int_equal(d.chunk_bytes, good[i].want);
	}
	static const char *const bad[] = {"", "KiB", "64kib", "64KiBx", "1.5", "0.3KB7", "1e2KiB ", "inf", "0x10", "1,5MB"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(set(&d, "chunk-bytes", bad[i], NULL), RV_E_INVALID);
	assert_int_equal(set(&d, "chunk-bytes", "99999999999TB", NULL), RV_E_RANGE);
	assert_int_equal(set(&d, "chunk-bytes", "-1KiB", NULL), RV_E_RANGE);
}

static void rates_have_units(void **state) {
	(void)state;
	static const struct rv_option cap = {.name = "max-up", .type = RV_OPT_RATE, .max = 125e6, .fallback = "0"};
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {{"0", 0},
				{"unlimited", 0},
				{"none", 0},
				{"20mbit", 2500000},
				{"20Mbit/s", 2500000},
				{"1.5mbit", 187500},
				{"500kbit", 62500},
				{"1gbit", 125000000},
				{"2.5MB", 2500000},
				{"600KB/s", 600000},
				{"12500B/s", 12500}};
	int64_t v = -1;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		char text[RV_OPTION_TEXT_BYTES];
		assert_int_equal(rv_option_value_parse(&cap, &v, good[i].text, NULL), RV_OK);
		assert_int_equal(v, good[i].want);
		rv_option_value_print(&cap, &v, text);
		v = -1;
		assert_int_equal(rv_option_value_parse(&cap, &v, text, NULL), RV_OK);
		assert_int_equal(v, good[i].want);
	}
	static const char *const bad[] = {"", "20", "mbit", "20 mbits", "20MBit", "1bit", "20mbit/h", "limitless", "2MiB"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(rv_option_value_parse(&cap, &v, bad[i], NULL), RV_E_INVALID);
	struct rv_errtext et;
	assert_int_equal(rv_option_value_parse(&cap, &v, "2gbit", &et), RV_E_RANGE);
	assert_string_equal(et.text, "max-up = 2gbit: must be in [0, 1gbit]");
	assert_int_equal(rv_option_value_parse(&cap, &v, "-1mbit", NULL), RV_E_RANGE);
	static const struct rv_option least = {.name = "max-up", .type = RV_OPT_RATE, .min = 12500, .max = 125e6};
	assert_int_equal(rv_option_value_parse(&least, &v, "0", NULL), RV_OK);
	assert_int_equal(v, 0);
	assert_int_equal(rv_option_value_parse(&least, &v, "100kbit", NULL), RV_OK);
	assert_int_equal(rv_option_value_parse(&least, &v, "99kbit", &et), RV_E_RANGE);
	assert_string_equal(et.text, "max-up = 99kbit: must be in [100kbit, 1gbit], or 0");
}

/* Settings are shown to people, and kept in files that they read. */
static void a_rate_is_printed_as_it_is_said(void **state) {
	(void)state;
	static const struct rv_option cap = {.name = "max-up", .type = RV_OPT_RATE, .max = 1e9, .fallback = "0"};
	static const struct {
		int64_t v;
		const char *want;
	} cases[] = {{0, "unlimited"}, {125000, "1mbit"}, {187500, "1500kbit"}, {250000000, "2gbit"}, {12501, "12501B/s"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[RV_OPTION_TEXT_BYTES];
		rv_option_value_print(&cap, &cases[i].v, text);
		assert_string_equal(text, cases[i].want);
	}
}

static void durations_have_units(void **state) {
	(void)state;
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {{"250", 250},     {"500ms", 500}, {"20s", 20000}, {"5m", 300000},
				{"5min", 300000}, {"0.5s", 500},  {"2000us", 2},  {"1h", 3600000}};
	struct demo d = {0};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(set(&d, "timeout-ms", good[i].text, NULL), RV_OK);
		assert_int_equal(d.timeout_ms, good[i].want);
	}
	struct rv_errtext et = {0};
	assert_int_equal(set(&d, "timeout-ms", "5 parsecs", &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "500ms, 20s, 5m, 2h, 7d, 4w or 1y"));
	assert_int_equal(set(&d, "timeout-ms", "2w", &et), RV_E_RANGE);
	assert_int_equal(set(&d, "timeout-ms", "1y", &et), RV_E_RANGE);
	assert_int_equal(set(&d, "timeout-ms", "1us", &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "not a whole number of milliseconds"));
}

static void doubles_are_finite_decimals(void **state) {
	(void)state;
	struct demo d = {0};
	assert_int_equal(set(&d, "free-double", "-1.25e-3", NULL), RV_OK);
	assert_true(d.free_double == -1.25e-3);
	assert_int_equal(set(&d, "free-double", "-0.0", NULL), RV_OK);
	assert_false(signbit(d.free_double));
	assert_int_equal(set(&d, "free-double", ".5", NULL), RV_OK);
	static const char *const bad[] = {"", "nan", "inf", "-inf", "1e999", "0x1p3", "1.0f", " 1", "1 ", ".", "-", "1e"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(set(&d, "free-double", bad[i], NULL), RV_E_INVALID);
}

static void bools_have_four_spellings(void **state) {
	(void)state;
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};
	struct demo d = {0};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(set(&d, "resume", yes[i], NULL), RV_OK);
		assert_true(d.resume);
		assert_int_equal(set(&d, "resume", no[i], NULL), RV_OK);
		assert_false(d.resume);
	}
	struct rv_errtext et = {0};
	assert_int_equal(set(&d, "resume", "maybe", &et), RV_E_INVALID);
	assert_string_equal(et.text, "resume = maybe: must be yes or no");
	assert_int_equal(set(&d, "resume", "", &et), RV_E_INVALID);
	assert_string_equal(et.text, "resume = (nothing): must be yes or no");
}

static void strings_are_bounded_and_clean(void **state) {
	(void)state;
	struct demo d;
	memset(&d, '?', sizeof d);
	struct rv_errtext et = {0};
	assert_int_equal(set(&d, "name", "123456789012345", NULL), RV_OK);
	assert_string_equal(d.name, "123456789012345");
	assert_int_equal(set(&d, "name", "1234567890123456", &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "16 bytes, the limit is 15"));
	assert_int_equal(set(&d, "name", "a\tb", &et), RV_E_INVALID);
	assert_string_equal(et.text, "name: holds the control character 0x09 at byte 1");
	assert_int_equal(set(&d, "name", "", NULL), RV_OK);
	for (size_t i = 0; i < sizeof d.name; i++)
		assert_int_equal(d.name[i], 0);
}

static void enums_know_their_choices(void **state) {
	(void)state;
	struct demo d = {0};
	assert_int_equal(set(&d, "late", "discard", NULL), RV_OK);
	assert_string_equal(d.late, "discard");
	static const char *const bad[] = {"", "kee", "keepx", "keep|discard", "|", "KEEP", "discard|"};
	struct rv_errtext et = {0};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(set(&d, "late", bad[i], &et), RV_E_INVALID);
	assert_string_equal(et.text, "late = discard|: must be one of keep|discard; did you mean discard?");
	assert_int_equal(set(&d, "late", "other", &et), RV_E_INVALID);
	assert_string_equal(et.text, "late = other: must be one of keep|discard");
	assert_string_equal(d.late, "discard");
}

/* One of several, as its place among them. */
static void choices_are_places(void **state) {
	(void)state;
	struct {
		int rule, must;
	} v = {0};
	static const struct rv_option table[] = {
		{"rule", RV_OPT_CHOICE, 0, 0, "mean", 0, 0, "median|mean|trimmed", "A rule.", NULL},
		{"must", RV_OPT_CHOICE, sizeof v.rule, 0, NULL, 0, 0, "a|b", "Required.", NULL},
		{.name = NULL},
	};
	struct rv_errtext et = {0};
	char text[RV_OPTION_TEXT_BYTES];
	rv_options_defaults(table, &v);
	assert_int_equal(v.rule, 1);
	assert_int_equal(rv_options_check_required(table, &v, &et), RV_E_INVALID);
	assert_int_equal(rv_options_set(table, &v, "must", "a", NULL), RV_OK);
	assert_int_equal(rv_options_check_required(table, &v, &et), RV_OK);
	static const char *const names[] = {"median", "mean", "trimmed"};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rv_options_set(table, &v, "rule", names[i], NULL), RV_OK);
		assert_int_equal(v.rule, i);
		rv_option_value_print(&table[0], &v, text);
		assert_string_equal(text, names[i]);
	}
	static const char *const bad[] = {"", "mea", "mean|trimmed", "|", "trimmedx"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(rv_options_set(table, &v, "rule", bad[i], NULL), RV_E_INVALID);
	assert_int_equal(v.rule, 2);
	assert_int_equal(rv_options_set(table, &v, "rule", "trimed", &et), RV_E_INVALID);
	assert_string_equal(et.text, "rule = trimed: must be one of median|mean|trimmed; did you mean trimmed?");
}

static void printed_doubles_are_short_and_exact(void **state) {
	(void)state;
	const struct rv_option *o = demo_options;
	while (strcmp(o->name, "free-double") != 0)
		o++;
	static const struct {
		double v;
		const char *want;
	} cases[] = {{0.1, "0.1"}, {3e-4, "0.0003"}, {1.0 / 3, "0.3333333333333333"}, {1e300, "1e+300"}, {-5, "-5"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct demo d = {.free_double = cases[i].v};
		char text[RV_OPTION_TEXT_BYTES];
		rv_option_value_print(o, &d, text);
		assert_string_equal(text, cases[i].want);
		assert_int_equal(rv_option_value_parse(o, &d, text, NULL), RV_OK);
		assert_true(d.free_double == cases[i].v);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(ranges_are_inclusive_and_named),
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(rates_have_units),
		cmocka_unit_test(a_rate_is_printed_as_it_is_said),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(doubles_are_finite_decimals),
		cmocka_unit_test(bools_have_four_spellings),
		cmocka_unit_test(strings_are_bounded_and_clean),
		cmocka_unit_test(enums_know_their_choices),
		cmocka_unit_test(choices_are_places),
		cmocka_unit_test(printed_doubles_are_short_and_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
