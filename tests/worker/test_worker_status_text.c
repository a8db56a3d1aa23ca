/* status_text.h: a status as lines for a terminal. */
#include "tests/common/check.h"
#include "worker/local/status_text.h"

#include <stdlib.h>
#include <string.h>

/* Prints a status that is given as JSON; the caller frees the text. */
static char *print(const char *json) {
	char *text = NULL;
	size_t n = 0;
	json_t *status = json_loads(json, 0, NULL);
	FILE *f = open_memstream(&text, &n);
	assert_non_null(status);
	assert_non_null(f);
	status_text_print(status, f);
	assert_int_equal(fclose(f), 0);
	json_decref(status);
	return text;
}

static void assert_says(const char *text, const char *line) {
	if (!strstr(text, line))
		fail_msg("\"%s\" is not in:\n%s", line, text);
}

static void test_all_of_it(void **state) {
	(void)state;
	char *text = print(
		"{\"text\": \"Training.\", \"run\": {\"name\": \"Perl\", \"operator\": \"Ada\\u001b[2J\", \"rounds\": 60},"
		"\"last_round\": {\"round\": 10, \"counted\": false, \"why_not\": \"it was late\"},"
		"\"trouble\": \"The disk is full\\u0007.\", \"given\": {\"rounds\": 9, \"tokens\": 123000, \"share\": 0.25},"
		"\"progress\": {\"round\": 11, \"step\": 3, \"steps_per_round\": 10, \"eta_s\": 7500,"
		"\"device\": \"cpu\", \"tokens_per_s\": 812},"
		"\"line\": {\"sent_bytes\": 5000000, \"received_bytes\": 6000000, \"up_bytes_per_s\": 1250000,"
		"\"down_bytes_per_s\": 2500000},"
		"\"allowed\": {\"until\": 1795500000, \"bytes_today\": 2000000, \"max_per_day\": 1000000000,"
		"\"bytes_this_month\": 30000000, \"max_per_month\": 0}}");
	assert_says(text, "Now:          Training.\n");
	assert_says(text, "Until:        ");
	assert_says(text, "Trouble:      The disk is full?.\n");
	assert_says(text, "The run:      Perl, run by Ada?[2J\n");
	assert_says(text, "Last round:   round 11 did not count this computer: it was late\n");
	assert_says(text, "Given so far: 9 rounds, 123 k tokens, 25 % of the run\n");
	assert_says(text, "Progress:     round 12 of 60, step 3 of 10, ends in 2 h 5 min\n");
	assert_says(text, "Computes on:  cpu, 812 tokens/s\n");
	assert_says(
		text,
		"Line:         5.00 MB sent, 6.00 MB received since the start; it carries 10.0 Mbit/s up, 20.0 Mbit/s down\n");
	assert_says(text, "Used:         2.00 MB of 1.00 GB today, 30.0 MB this month\n");
	free(text);
}

/* A status of a moment at which little is known, or of a stranger that answers in its place. */
static void test_little_of_it(void **state) {
	(void)state;
	free(print("{}"));
	char *line = print("{\"line\": {\"sent_bytes\": 1, \"received_bytes\": 2, \"up_bytes_per_s\": 0,"
					   "\"down_bytes_per_s\": 2500000}}");
	assert_says(line, "since the start; it carries 20.0 Mbit/s down\n"); /* up was not measured */
	free(line);
	free(print("{\"text\": 7, \"run\": [], \"last_round\": \"x\", \"given\": null, \"progress\": {}, \"line\": {}, "
			   "\"allowed\": {}}"));
	char *text = print("{\"text\": \"Asking.\", \"last_round\": null, \"given\": {\"rounds\": 0, \"tokens\": 0, "
					   "\"share\": null}, \"run\": {\"name\": \"\"}}");
	assert_says(text, "Now:          Asking.");
	assert_null(strstr(text, "Trouble"));
	assert_null(strstr(text, "Last round"));
	assert_null(strstr(text, "Progress"));
	free(text);
	text = print("{\"given\": {\"rounds\": 1, \"tokens\": 512, \"share\": null}}");
	assert_says(text, "Given so far: 1 round, 512 tokens\n");
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_of_it), cmocka_unit_test(test_little_of_it)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
