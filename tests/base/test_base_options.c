/* The table: defaults, required options, suggestions, and the canonical text that parses back. */
#include "base/options.h"

#include "base/rng.h"
#include "tests/base/demo_options.h"
#include "tests/common/check.h"

#include <string.h>

static void defaults_fill_the_struct(void **state) {
	(void)state;
	struct demo d;
	memset(&d, '?', sizeof d);
	rv_options_defaults(demo_options, &d);
	assert_true(d.resume);
	assert_int_equal(d.rounds, 30);
	assert_int_equal(d.chunk_bytes, 65536);
	assert_int_equal(d.timeout_ms, 4000);
	assert_true(d.lr == 3e-4);
	assert_string_equal(d.name, "");
	assert_string_equal(d.link, "");
	assert_string_equal(d.late, "keep");
}

static void required_options_are_all_named(void **state) {
	(void)state;
	struct two {
		int64_t a;
		double b;
		char c[8];
	} v;
	static const struct rv_option table[] = {
		{"alpha", RV_OPT_INT, offsetof(struct two, a), 0, NULL, 0, 0, NULL, "A.", NULL},
		{"beta", RV_OPT_DOUBLE, offsetof(struct two, b), 0, NULL, 0, 0, NULL, "B.", NULL},
		{"gamma", RV_OPT_STRING, offsetof(struct two, c), 8, NULL, 0, 0, NULL, "C.", NULL},
		{.name = NULL},
	};
	struct rv_errtext et = {0};
	char text[64];
	rv_options_defaults(table, &v);
	assert_int_equal(rv_options_check_required(table, &v, &et), RV_E_INVALID);
	assert_string_equal(et.text, "missing required options: --alpha, --beta, --gamma");
	assert_int_equal(rv_options_print(table, &v, text, sizeof text), 0); /* nothing is set: nothing is printed */
	assert_int_equal(rv_options_set(table, &v, "alpha", "0", &et), RV_OK);
	assert_int_equal(rv_options_set(table, &v, "beta", "0", &et), RV_OK);
	assert_int_equal(rv_options_check_required(table, &v, &et), RV_E_INVALID);
	assert_string_equal(et.text, "missing a required option: --gamma");
	assert_int_equal(rv_options_set(table, &v, "gamma", "x", &et), RV_OK);
	assert_int_equal(rv_options_check_required(table, &v, &et), RV_OK);
}

static void unknown_names_get_a_suggestion(void **state) {
	(void)state;
	struct demo d = {0};
	struct rv_errtext et = {0};
	assert_int_equal(rv_options_set(demo_options, &d, "timeout", "1", &et), RV_E_INVALID);
	assert_string_equal(et.text, "timeout: unknown option; did you mean timeout-ms?");
	assert_int_equal(rv_options_set(demo_options, &d, "frobnicate", "1", &et), RV_E_INVALID);
	assert_string_equal(et.text, "frobnicate: unknown option; --help lists all of them");
}

static void canonical_text_is_as_documented(void **state) {
	(void)state;
	struct demo d;
	char text[512];
	rv_options_defaults(demo_options, &d);
	assert_int_equal(rv_options_set(demo_options, &d, "link", "rivulet://h:1/R#k=a&t=b", NULL), RV_OK);
	const char *want = "resume = yes\nrounds = 30\nchunk-bytes = 65536\ntimeout-ms = 4000\nlr = 0.0003\nname = \"\"\n"
					   "link = rivulet://h:1/R#k=a&t=b\nlate = keep\nfree-int = 0\nfree-double = 0\n";
	assert_int_equal(rv_options_print(demo_options, &d, text, sizeof text), strlen(want));
	assert_string_equal(text, want);
}

static void printing_into_too_little_space_cuts_and_counts(void **state) {
	(void)state;
	struct demo d;
	char whole[512], part[512];
	rv_options_defaults(demo_options, &d);
	size_t n = rv_options_print(demo_options, &d, whole, sizeof whole);
	assert_int_equal(rv_options_print(demo_options, &d, NULL, 0), n);
	for (size_t cap = 1; cap <= n + 1; cap++) {
		memset(part, '?', sizeof part);
		assert_int_equal(rv_options_print(demo_options, &d, part, cap), n);
		assert_int_equal(strlen(part), cap - 1);
		assert_memory_equal(part, whole, cap - 1);
		assert_int_equal(part[cap], '?');
	}
}

/* Random structs, strings of awkward characters: print, parse, compare bytes. */
static void what_is_printed_parses_back(void **state) {
	(void)state;
	static const char letters[] = "ab #\"\\=' #\303\244";
	struct rv_rng r = rv_rng_of(1, 0);
	for (int i = 0; i < 2000; i++) {
		struct demo d, back;
		char text[1024], name[16] = "", number[64];
		memset(&d, 0, sizeof d);
		memset(&back, 0, sizeof back);
		rv_options_defaults(demo_options, &d);
		rv_options_defaults(demo_options, &back);
		for (uint64_t k = 0, n = rv_rng_below(&r, 16); k < n; k++)
			name[k] = letters[rv_rng_below(&r, sizeof letters - 1)];
		(void)snprintf(number, sizeof number, "%.17g", rv_rng_normal(&r) * 1e10);
		assert_int_equal(rv_options_set(demo_options, &d, "name", name, NULL), RV_OK);
		assert_int_equal(rv_options_set(demo_options, &d, "free-double", number, NULL), RV_OK);
		d.free_int = (int64_t)rv_rng_u64(&r);
		d.resume = rv_rng_below(&r, 2);
		assert_true(rv_options_print(demo_options, &d, text, sizeof text) < sizeof text);
		struct rv_errtext et = {0};
		if (rv_options_parse_text(demo_options, &back, "canonical", text, &et) != RV_OK)
			fail_msg("%s\n%s", et.text, text);
		assert_memory_equal(&d, &back, sizeof d);
	}
}

/* Each line and each argument adds a text; printed, they are a line each again. */
static void a_list_takes_several_texts(void **state) {
	(void)state;
	struct listed {
		char urls[40];
		int64_t n;
	} v, again;
	static const struct rv_option table[] = {
		{"url", RV_OPT_LIST, offsetof(struct listed, urls), sizeof v.urls, "", 0, 0, NULL, "URLs.", NULL},
		{"n", RV_OPT_INT, offsetof(struct listed, n), 0, "1", 0, 0, NULL, "N.", NULL},
		{.name = NULL},
	};
	char *argv[] = {"prog", "--url", "c #3", "--n=2", "--url", "d"};
	char text[200], one[8];
	rv_options_defaults(table, &v);
	assert_string_equal(v.urls, "");
	assert_ok(rv_options_parse_text(table, &v, "a.conf", "url = a\nurl = b b\n", &et));
	assert_ok(rv_options_parse_argv(table, NULL, &v, 6, argv, NULL, 0, NULL, &et));
	assert_string_equal(v.urls, "a\nb b\nc #3\nd");
	(void)rv_options_print(table, &v, text, sizeof text);
	assert_string_equal(text, "url = a\nurl = b b\nurl = \"c #3\"\nurl = d\nn = 2\n");
	rv_options_defaults(table, &again);
	assert_ok(rv_options_parse_text(table, &again, "b.conf", text, &et));
	assert_memory_equal(&again, &v, sizeof v);
	const char *at = v.urls;
	static const char *const expected[] = {"a", "b b", "c #3", "d"};
	for (int i = 0; i < 4; i++) {
		assert_true(rv_list_next(&at, one, sizeof one));
		assert_string_equal(one, expected[i]);
	}
	assert_false(rv_list_next(&at, one, sizeof one));
	struct rv_errtext et = {0};
	assert_int_equal(rv_options_set(table, &v, "url", "", &et), RV_E_INVALID);
	assert_int_equal(rv_options_set(table, &v, "url", "x\ny", &et), RV_E_INVALID);
	assert_int_equal(rv_options_set(table, &v, "url", "a text for which there is no room", &et), RV_E_RANGE);
	assert_string_equal(v.urls, "a\nb b\nc #3\nd");
	assert_int_equal(rv_options_parse_text(table, &v, "a.conf", "n = 1\nn = 2\n", &et), RV_E_INVALID);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_fill_the_struct),
		cmocka_unit_test(required_options_are_all_named),
		cmocka_unit_test(unknown_names_get_a_suggestion),
		cmocka_unit_test(a_list_takes_several_texts),
		cmocka_unit_test(canonical_text_is_as_documented),
		cmocka_unit_test(printing_into_too_little_space_cuts_and_counts),
		cmocka_unit_test(what_is_printed_parses_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
