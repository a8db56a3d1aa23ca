/* --help: groups in order, defaults, ranges, choices, wrapped lines. */
#include "base/options.h"
#include "tests/base/demo_options.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

static char *help_text(void) {
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	rv_options_help(demo_options, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void it_teaches(void **state) {
	(void)state;
	char *text = help_text();
	static const char *const parts[] = {
		"\nRun:\n    --[no-]resume\n        Go on where the last run stopped. (default: yes)\n",
		"    --rounds N\n        Outer steps. (default: 30; range: [1, 100000])\n",
		"    --chunk-bytes SIZE\n        Size of a chunk. (default: 64KiB; range: [1B, 1GiB])\n",
		"    --lr X\n        Learning rate. (default: 3e-4; range: [1e-09, 1])\n",
		"    --link TEXT\n        The invite link. (required)\n",
		"    --late NAME\n        What a late worker does. (default: keep; one of keep|discard)\n",
		"\nOptions:\n    --name TEXT\n        A name. (default: none)\n",
	};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (!strstr(text, parts[i]))
			fail_msg("not found:\n%s\nin:\n%s", parts[i], text);
	}
	free(text);
}

static void groups_stand_together_and_once(void **state) {
	(void)state;
	char *text = help_text();
	char *run = strstr(text, "\nRun:"), *network = strstr(text, "\nNetwork:");
	char *late = strstr(text, "--late"), *link = strstr(text, "--link");
	assert_true(run && network && late && link);
	assert_true(run < late && late < network && network < link);
	assert_null(strstr(run + 1, "\nRun:"));
	free(text);
}

static void lines_are_not_wider_than_a_terminal(void **state) {
	(void)state;
	char *text = help_text();
	for (char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 96);
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_teaches),
		cmocka_unit_test(groups_stand_together_and_once),
		cmocka_unit_test(lines_are_not_wider_than_a_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
