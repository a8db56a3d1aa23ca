/* The status as text and as lines for programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/status_view.h"

static json_t *status_at(int round, const char *phase) {
	json_t *history = json_array();
	for (int i = 0; i < round; i++)
		(void)json_array_append_new(history, json_pack("{s:i,s:i,s:f,s:i}", "round", i, "participants", 4, "loss",
													   3.0 - 0.25 * i, "tx_bytes", 1000));
	return json_pack("{s:s,s:i,s:i,s:i,s:f,s:f,s:i,s:n,s:o,s:[{s:i,s:s,s:b,s:s,s:i,s:f,s:f,s:i,s:i,s:i,s:f}]}", "phase",
					 phase, "round", round, "rounds_total", 8, "attempt", 2, "loss", 2.5, "tokens_per_s", 12345.0,
					 "alive", 4, "eta_s", "history", history, "members", "member", 0, "name", "tiny", "alive", 0,
					 "phase", "averaging", "round", round, "loss", 2.5, "tokens_per_s", 3000.0, "tx_bytes", 5000000,
					 "compute_us", 61000000, "reduce_us", 2000000, "silent_s", 12.34);
}

static char *news(struct status_news *told, int round, const char *phase) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *s = status_at(round, phase);
	assert_non_null(s);
	status_view_print_news(told, s, f);
	json_decref(s);
	(void)fclose(f);
	return text;
}

static void expect_news(struct status_news *told, int round, const char *phase, const char *want) {
	char *got = news(told, round, phase);
	assert_string_equal(got, want);
	free(got);
}

static void test_news_are_told_once(void **state) {
	(void)state;
	struct status_news told = {0};
	expect_news(&told, 0, "waiting", "{\"event\":\"waiting\",\"round\":0,\"rounds_total\":8,\"alive\":4}\n");
	expect_news(&told, 0, "waiting", "");
	expect_news(&told, 0, "training", "");
	expect_news(&told, 1, "training",
				"{\"event\":\"round\",\"round\":1,\"rounds_total\":8,\"participants\":4,\"loss\":3.0,\"tx_bytes\":1000,"
				"\"alive\":4,\"eta_s\":null}\n");
	expect_news(&told, 1, "averaging", "");
	char *two = news(&told, 3, "done");
	assert_non_null(strstr(two, "\"round\":2,"));
	assert_non_null(strstr(two, "\"round\":3,"));
	assert_non_null(strstr(two, "{\"event\":\"done\",\"round\":3,"));
	free(two);
}

static void test_of_the_past_only_the_last_round(void **state) {
	(void)state;
	struct status_news told = {0};
	char *text = news(&told, 5, "training");
	assert_non_null(strstr(text, "\"round\":5,"));
	assert_null(strstr(text, "\"round\":4,"));
	free(text);
}

static void test_table(void **state) {
	(void)state;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *s = status_at(4, "averaging");
	assert_int_equal(status_view_print(s, true, f), 3);
	(void)fclose(f);
	assert_non_null(strstr(text, "[############............] round 4 of 8, averaging (attempt 2)  loss 2.5000"));
	assert_non_null(strstr(text, "12.3 k tokens/s"));
	assert_non_null(strstr(text, "5.00 MB"));
	assert_non_null(strstr(text, "1:01"));
	assert_non_null(strstr(text, "12.3 s ago, taken for dead"));
	free(text);
	json_decref(s);
}

/* What is missing shows as nothing. */
static void test_an_empty_status(void **state) {
	(void)state;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *s = json_object();
	struct status_news told = {0};
	assert_int_equal(status_view_print(s, false, f), 2);
	status_view_print_news(&told, s, f);
	(void)fclose(f);
	assert_non_null(strstr(text, "not running"));
	free(text);
	json_decref(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_news_are_told_once),
		cmocka_unit_test(test_of_the_past_only_the_last_round),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_an_empty_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
