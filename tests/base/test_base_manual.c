/* The manual page: sections in order, options with their facts, text that troff does not take for
 * its own. */
#include "base/manual.h"

#include "tests/base/demo_options.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	(void)args;
	(void)et;
	return RV_OK;
}

static const struct rv_preset presets[] = {{"few-rounds", "Few rounds.", "rounds = 3\n"}, {.name = NULL}};
static const struct rv_command commands[] = {
	{.name = "serve",
	 .synopsis = "[FILE]",
	 .help = "Serves.",
	 .details = "First line,\nand the next of the same paragraph.\n\nA second.\n    an --example here\n.A point first.",
	 .options = demo_options,
	 .presets = presets,
	 .run = run},
	{.name = "status", .synopsis = "", .help = "Shows a\\b.", .run = run},
	{.run = NULL},
};
static const struct rv_program many = {"a-prog", "a-prog does things: many. And more.", commands,
									   "    a-prog serve 'x'", false};
static const struct rv_command single[] = {{.synopsis = "LINK", .help = "Links.", .options = demo_options, .run = run},
										   {.run = NULL}};
static const struct rv_program one = {"tool", "Helps a lot.", single, NULL, false};

static char *page_of(const struct rv_program *p) {
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	rv_manual_print(p, "2026-11-24", f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void expect_in_order(const struct rv_program *p, const char *const *parts) {
	char *text = page_of(p);
	const char *at = text;
	for (; *parts; parts++) {
		const char *found = strstr(at, *parts);
		if (!found)
			fail_msg("not found, or not in its place:\n%s\nin:\n%s", *parts, text);
		at = found + strlen(*parts);
	}
	free(text);
}

static void a_program_with_commands(void **state) {
	(void)state;
	static const char *const parts[] = {
		".TH \"A-PROG\" 1 \"2026-11-24\" \"Rivulet " RV_VERSION "\" \"User Commands\"\n",
		".SH NAME\na\\-prog \\- does things\n",
		".SH SYNOPSIS\n\\fBa\\-prog serve\\fR [\\fIoptions\\fR] \\fI[FILE]\\fR\n.br\n\\fBa\\-prog status\\fR",
		".SH DESCRIPTION\na\\-prog does things: many. And more.\n",
		".SH COMMANDS\n.SS \"serve\"\n",
		"First line,\nand the next of the same paragraph.\n.PP\nA second.\n",
		".PP\n.nf\n    an \\-\\-example here\n.fi\n.PP\n\\&.A point first.\n",
		"\\fB\\-\\-preset\\fR",
		"\\fBfew\\-rounds\\fR\nFew rounds.\n",
		".I \"Run\"\n.TP\n\\fB\\-\\-[no\\-]resume\\fR\nGo on where the last run stopped.\n(default: yes)\n",
		"\\fB\\-\\-late\\fR \\fINAME\\fR\nWhat a late worker does.\n(default: keep; one of keep|discard)\n",
		".I \"Network\"\n.TP\n\\fB\\-\\-chunk\\-bytes\\fR \\fISIZE\\fR\nSize of a chunk.\n(default: 64KiB; range: [1B, "
		"1GiB])\n",
		"The invite link.\n(required)\n",
		".SS \"status\"\n",
		"Shows a\\eb.\n",
		".SH \"OPTIONS OF EVERY COMMAND\"\n",
		".SH \"EXIT STATUS\"\n",
		"\\fB130\\fR\n",
		".SH EXAMPLES\n.nf\n    a\\-prog serve 'x'\n.fi\n",
		NULL,
	};
	expect_in_order(&many, parts);
}

static void a_program_without_commands(void **state) {
	(void)state;
	static const char *const parts[] = {
		".SH NAME\ntool \\- helps a lot\n",
		".SH OPTIONS\n\\fBtool\\fR [\\fIoptions\\fR] \\fILINK\\fR\n",
		"\\fB\\-\\-rounds\\fR \\fIN\\fR\n",
		NULL,
	};
	expect_in_order(&one, parts);
	char *text = page_of(&one);
	assert_null(strstr(text, ".SH COMMANDS"));
	assert_null(strstr(text, ".SH EXAMPLES"));
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_with_commands),
		cmocka_unit_test(a_program_without_commands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
