/* Config text and command lines: what is understood, which wins, and what each malformed line is
 * told. */
#include "base/options.h"

#include "base/file.h"
#include "tests/base/demo_options.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum rv_err parse(const char *text, struct demo *d, struct rv_errtext *et) {
	rv_options_defaults(demo_options, d);
	return rv_options_parse_text(demo_options, d, "run.conf", text, et);
}

static void lines_comments_and_quotes(void **state) {
	(void)state;
	struct demo d;
	const char *text = "# a comment\n\n  rounds = 7   # why seven\n\tlr=1e-3\r\nname = \"a # \\\"b\\\\\" # quoted\n"
					   "link = https://x/y#sha256=00\nresume = no";
	assert_ok(parse(text, &d, &et));
	assert_int_equal(d.rounds, 7);
	assert_true(d.lr == 1e-3);
	assert_string_equal(d.name, "a # \"b\\");
	assert_string_equal(d.link, "https://x/y#sha256=00");
	assert_false(d.resume);
	assert_ok(parse("", &d, &et));
	assert_ok(parse("\n\n#", &d, &et));
	assert_ok(parse("name =\nlink = #nothing", &d, &et));
	assert_string_equal(d.link, "");
}

static void malformed_lines_are_explained(void **state) {
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"rounds 7", "run.conf:1: \"rounds 7\": a line is `key = value` or a `#` comment"},
		{"\n= 7", "run.conf:2: the name before `=` is missing"},
		{"rounds = 7\nrounds = 8", "run.conf:2: rounds is set twice, first on line 1"},
		{"rouds = 7", "run.conf:1: rouds: unknown option; did you mean rounds?"},
		{"rounds = seven", "run.conf:1: rounds = seven: must be a whole number"},
		{"rounds =", "run.conf:1: rounds = (nothing): must be a whole number"},
		{"\n\nrounds = 0", "run.conf:3: rounds = 0: must be in [1, 100000]"},
		{"name = \"abc", "run.conf:1: the closing quote is missing"},
		{"name = \"abc\\", "run.conf:1: in a quoted value, a backslash stands before \" or \\ only"},
		{"name = \"a\\nb\"", "run.conf:1: in a quoted value, a backslash stands before \" or \\ only"},
		{"name = \"abc\" d", "run.conf:1: text after the closing quote"},
		{"name = a\001b", "run.conf:1: name: holds the control character 0x01 at byte 1"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct demo d;
		struct rv_errtext et = {0};
		assert_int_not_equal(parse(cases[i].text, &d, &et), RV_OK);
		assert_string_equal(et.text, cases[i].want);
	}
}

static void overlong_lines_are_refused(void **state) {
	(void)state;
	static const char *const heads[] = {"", "name = ", "name = \"", "name"};
	static char text[10000];
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		struct demo d;
		struct rv_errtext et = {0};
		(void)snprintf(text, sizeof text, "%s", heads[i]);
		memset(text + strlen(heads[i]), 'a', 5000);
		(void)snprintf(text + strlen(heads[i]) + 5000, 8, "= 1");
		assert_int_not_equal(parse(text, &d, &et), RV_OK);
		assert_memory_equal(et.text, "run.conf:1: ", 12);
	}
}

static char *const_argv(const char *s) {
	union {
		const char *in;
		char *out;
	} u = {.in = s};
	return u.out;
}

enum { ARGS_CAP = 2 };

struct command_line {
	struct demo d;
	const char *args[ARGS_CAP];
	int n_args;
	struct rv_errtext et;
	enum rv_err e;
};

static const struct rv_preset demo_presets[] = {
	{"quick", "few rounds", "rounds = 3\nlr = 0.25\n"},
	{"slow", "many rounds", "rounds = 500\n"},
	{"gentle", "small steps", "lr = 0.125\n"},
	{.name = NULL},
};

/* The words are separated by single blanks. */
static struct command_line parse_words(const char *words) {
	struct command_line c = {.n_args = -1};
	static char buffer[1024];
	char *argv[32] = {const_argv("prog")};
	int argc = 1;
	(void)snprintf(buffer, sizeof buffer, "%s", words);
	for (char *save, *w = strtok_r(buffer, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	rv_options_defaults(demo_options, &c.d);
	c.e = rv_options_parse_argv(demo_options, demo_presets, &c.d, argc, argv, c.args, ARGS_CAP, &c.n_args, &c.et);
	return c;
}

static void a_preset_gives_way_to_file_and_command_line(void **state) {
	(void)state;
	struct command_line c = parse_words("--rounds 7 --preset quick");
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 7);
	assert_true(c.d.lr == 0.25);
	c = parse_words("--preset=quick --preset slow");
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 500);
	assert_true(c.d.lr == 0.25);
	c = parse_words("--preset quik");
	assert_int_equal(c.e, RV_E_INVALID);
	assert_string_equal(c.et.text, "preset quik: unknown; did you mean quick?");
	c = parse_words("--preset elephant");
	assert_string_equal(c.et.text, "preset elephant: unknown; one of quick, slow, gentle");
	c = parse_words("--preset");
	assert_string_equal(c.et.text, "--preset: needs a value: the name of a preset");
}

/* The file of `text` as --config, after `words`. */
static struct command_line parse_with_file(const char *text, const char *words) {
	char dir[64], line[512];
	scratch_make(dir, sizeof dir);
	scratch_write(dir, "conf", text, strlen(text));
	(void)snprintf(line, sizeof line, "--config %s/conf %s", dir, words);
	struct command_line c = parse_words(line);
	scratch_remove(dir);
	return c;
}

static void a_file_may_name_a_preset(void **state) {
	(void)state;
	struct command_line c = parse_with_file("rounds = 9\npreset = quick\n", "");
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 9); /* wherever the preset's line stands */
	assert_true(c.d.lr == 0.25);
	c = parse_with_file("preset = quick\n", "--rounds 4 --preset quick");
	assert_int_equal(c.e, RV_E_INVALID); /* set twice */
	assert_non_null(strstr(c.et.text, ":1: preset = quick: sets rounds, as preset quick does; name one of the two"));
	c = parse_with_file("preset = quick\npreset = slow\n", "");
	assert_non_null(strstr(c.et.text, ":2: preset = slow: sets rounds, as preset quick does; name one of the two"));
	c = parse_with_file("preset = quik\n", "");
	assert_non_null(strstr(c.et.text, ":1: preset quik: unknown; did you mean quick?"));
}

static void presets_of_different_options_go_together(void **state) {
	(void)state;
	struct command_line c = parse_with_file("preset = slow\npreset = gentle\n", "");
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 500);
	assert_true(c.d.lr == 0.125);
	c = parse_with_file("preset = slow\nlr = 0.5\n", "--preset gentle");
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 500);
	assert_true(c.d.lr == 0.5);
	c = parse_with_file("preset = slow\npreset = gentle\n", "--preset quick");
	assert_non_null(strstr(c.et.text, ":1: preset = slow: sets rounds, as preset quick does; name one of the two"));
	c = parse_words("--preset slow --preset slow --preset slow --preset slow --preset slow");
	assert_string_equal(c.et.text, "preset slow: at most 4 presets may be named");
}

static void command_lines_are_understood(void **state) {
	(void)state;
	struct command_line c = parse_words("--rounds 7 file --lr=0.5 --no-resume --help --name=--odd -- --rounds");
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 7);
	assert_true(c.d.lr == 0.5);
	assert_false(c.d.resume);
	assert_string_equal(c.d.name, "--odd");
	assert_int_equal(c.n_args, 2);
	assert_string_equal(c.args[0], "file");
	assert_string_equal(c.args[1], "--rounds");
	c = parse_words("--resume=no --free-int -5 -");
	assert_int_equal(c.e, RV_OK);
	assert_false(c.d.resume);
	assert_int_equal(c.d.free_int, -5);
	assert_string_equal(c.args[0], "-");
	c = parse_words("--resume --rounds 3 --rounds 4");
	assert_int_equal(c.d.rounds, 4); /* the later wins */
	c = parse_words("");
	assert_true(c.e == RV_OK && c.n_args == 0);
}

static void wrong_command_lines_are_explained(void **state) {
	(void)state;
	static const struct {
		const char *words, *want;
	} cases[] = {
		{"--rouds 7", "--rouds: unknown option; did you mean --rounds?"},
		{"--learning-rate 7", "--learning-rate: unknown option; --help lists all of them"},
		{"--confg x", "--confg: unknown option; did you mean --config?"},
		{"--chekc", "--chekc: unknown option; did you mean --check?"},
		{"--preste x", "--preste: unknown option; did you mean --preset?"},
		{"--rounds", "--rounds: needs a value: a whole number"},
		{"--rounds --lr 1", "--rounds: needs a value: a whole number (write --rounds=--lr if that is the value)"},
		{"--rounds=x", "command line: rounds = x: must be a whole number"},
		{"--rounds=", "command line: rounds = (nothing): must be a whole number"},
		{"--no-rounds", "--no-rounds: unknown option; did you mean --rounds?"},
		{"-r 7", "-r: options are written --name; --help lists all of them"},
		{"a b c", "c: unexpected argument (at most 2)"},
		{"-- a b c", "c: unexpected argument (at most 2)"},
		{"--config", "--config: needs a value: the path of a config file"},
		{"--config /nonexistent", "config file: /nonexistent: cannot open for reading: No such file or directory"},
		{"--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1",
		 "--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...: unknown option; --help lists all of "
		 "them"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct command_line c = parse_words(cases[i].words);
		assert_int_not_equal(c.e, RV_OK);
		assert_string_equal(c.et.text, cases[i].want);
	}
}

static void the_command_line_wins_over_the_file(void **state) {
	(void)state;
	char dir[64], path[80], words[128];
	scratch_make(dir, sizeof dir);
	(void)snprintf(path, sizeof path, "%s/conf", dir);
	const char *text = "rounds = 5\nlr = 0.25\n";
	assert_int_equal(rv_file_write_atomic(path, text, strlen(text), 0600, NULL), RV_OK);
	(void)snprintf(words, sizeof words, "--rounds 9 --config %s", path);
	struct command_line c = parse_words(words);
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 9);
	assert_true(c.d.lr == 0.25);
	assert_int_equal(rv_file_write_atomic(path, "rounds = 5\0x", 12, 0600, NULL), RV_OK);
	(void)snprintf(words, sizeof words, "--config=%s", path);
	c = parse_words(words);
	assert_int_equal(c.e, RV_E_INVALID);
	assert_non_null(strstr(c.et.text, "NUL byte"));
	text = "\xef\xbb\xbf# saved by an editor that marks its files\nrounds = 6\n";
	assert_int_equal(rv_file_write_atomic(path, text, strlen(text), 0600, NULL), RV_OK);
	c = parse_words(words);
	assert_int_equal(c.e, RV_OK);
	assert_int_equal(c.d.rounds, 6);
	static char large[65537];
	memset(large, '#', sizeof large);
	assert_int_equal(rv_file_write_atomic(path, large, 65536, 0600, NULL), RV_OK);
	assert_int_equal(parse_words(words).e, RV_OK);
	assert_int_equal(rv_file_write_atomic(path, large, 65537, 0600, NULL), RV_OK);
	assert_int_equal(parse_words(words).e, RV_E_RANGE);
	assert_int_equal(unlink(path), 0);
}

static void flags_are_seen_before_the_double_dash(void **state) {
	(void)state;
	char *argv[] = {const_argv("--help"), const_argv("x"), const_argv("--check"), const_argv("--"),
					const_argv("--version")};
	assert_true(rv_options_wants(5, argv, "--check"));
	assert_false(rv_options_wants(5, argv, "--version"));
	assert_false(rv_options_wants(5, argv, "--help")); /* argv[0] is the program */
	assert_false(rv_options_wants(0, argv, "--check"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_comments_and_quotes),
		cmocka_unit_test(malformed_lines_are_explained),
		cmocka_unit_test(overlong_lines_are_refused),
		cmocka_unit_test(command_lines_are_understood),
		cmocka_unit_test(wrong_command_lines_are_explained),
		cmocka_unit_test(the_command_line_wins_over_the_file),
		cmocka_unit_test(a_preset_gives_way_to_file_and_command_line),
		cmocka_unit_test(a_file_may_name_a_preset),
		cmocka_unit_test(presets_of_different_options_go_together),
		cmocka_unit_test(flags_are_seen_before_the_double_dash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
