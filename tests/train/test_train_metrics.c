/* metrics.jsonl: the lines that docs/metrics.md promises, appended or afresh. */
#include "tests/train/train_fixture.h"

#include "base/file.h"
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[256], path[300];

static int setup(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/" METRICS_FILE, dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void assert_text(const char *want) {
	uint8_t *text;
	size_t n;
	assert_int_equal(rv_file_read(path, 1 << 16, &text, &n, NULL), RV_OK);
	assert_string_equal((char *)text, want);
	free(text);
}

static void test_lines(void **state) {
	(void)state;
	struct rv_json_lines *m;
	const struct metrics_eval eval = {
		.round = 2, .step = 8, .tokens = 512, .loss = 2.5, .bytes_sent = 7, .eval_tokens = 640};
	assert_int_equal(rv_json_lines_open(path, false, &m, NULL), RV_OK);
	assert_int_equal(metrics_write_eval(m, &eval, NULL), RV_OK);
	rv_json_lines_close(m);
	const char line[] = "{\"kind\":\"eval\",\"round\":2,\"step\":8,\"tokens\":512,\"loss\":2.5,\"bytes_sent\":7,"
						"\"eval_tokens\":640}\n";
	assert_text(line);
	assert_int_equal(rv_json_lines_open(path, true, &m, NULL), RV_OK);
	assert_int_equal(metrics_write_eval(m, &eval, NULL), RV_OK);
	rv_json_lines_close(m);
	char twice[2 * sizeof line];
	snprintf(twice, sizeof twice, "%s%s", line, line);
	assert_text(twice);
	assert_int_equal(rv_json_lines_open(path, false, &m, NULL), RV_OK);
	rv_json_lines_close(m);
	assert_text("");
}

/* The counter as it was when so many rounds were completed, also after an earlier rollback. */
static void test_tokens_of_a_round(void **state) {
	(void)state;
	struct rv_json_lines *m;
	uint64_t tokens = 1;
	static const uint64_t rounds[][2] = {{1, 10}, {2, 20}, {3, 30}, {2, 21}, {3, 31}};
	assert_int_equal(metrics_tokens_at("/nonexistent/m", 3, &tokens, NULL), RV_OK);
	assert_int_equal(tokens, 0);
	assert_int_equal(rv_json_lines_open(path, false, &m, NULL), RV_OK);
	for (int i = 0; i < 5; i++) {
		const struct metrics_round r = {.round = rounds[i][0], .tokens = rounds[i][1]};
		const struct metrics_rollback back = {.round = 1, .from_round = 3, .term = 1, .tokens = 10};
		if (i == 3)
			assert_int_equal(metrics_write_rollback(m, &back, NULL), RV_OK);
		assert_int_equal(metrics_write_round(m, &r, NULL), RV_OK);
	}
	rv_json_lines_close(m);
	static const uint64_t wanted[] = {0, 10, 21, 31, 31};
	for (uint64_t round = 0; round < 5; round++) {
		assert_int_equal(metrics_tokens_at(path, round, &tokens, NULL), RV_OK);
		assert_int_equal(tokens, wanted[round]);
	}
}

static void test_a_torn_line_is_ended(void **state) {
	(void)state;
	struct rv_json_lines *m;
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("{\"torn", f) >= 0);
	assert_int_equal(fclose(f), 0);
	for (int i = 0; i < 2; i++) { /* once is enough */
		assert_int_equal(rv_json_lines_open(path, true, &m, NULL), RV_OK);
		rv_json_lines_close(m);
		assert_text("{\"torn\n");
	}
}

static bool ended_with(const char *text) {
	struct rv_json_lines *m;
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rv_json_lines_open(path, true, &m, NULL), RV_OK);
	bool ended = metrics_ended(m);
	rv_json_lines_close(m);
	return ended;
}

static void test_the_end_is_the_last_whole_line(void **state) {
	(void)state;
	struct rv_json_lines *m;
	assert_int_equal(rv_json_lines_open(path, false, &m, NULL), RV_OK);
	assert_false(metrics_ended(m));
	for (int i = 0; i < 100; i++) /* more than is looked at */
		assert_int_equal(metrics_write_round(m, &(struct metrics_round){.round = 1}, NULL), RV_OK);
	assert_int_equal(metrics_write_end(m, &(struct metrics_end){.round = 1}, NULL), RV_OK);
	rv_json_lines_close(m);
	assert_int_equal(rv_json_lines_open(path, true, &m, NULL), RV_OK);
	assert_true(metrics_ended(m));
	rv_json_lines_close(m);
	assert_true(ended_with("{\"kind\":\"end\"}\n"));
	assert_false(ended_with("{\"kind\":\"end\"}"));
	assert_false(ended_with("{\"kind\":\"end\"}\n{\"kind\":\"round\"}\n"));
	assert_false(ended_with("{\"kind\":\"round\"}\n"));
	assert_false(ended_with("\n"));
}

static void test_what_json_cannot_say_is_null(void **state) {
	(void)state;
	struct rv_json_lines *m;
	assert_int_equal(rv_json_lines_open(path, false, &m, NULL), RV_OK);
	assert_int_equal(metrics_write_round(m, &(struct metrics_round){.round = 1, .train_loss = NAN}, NULL), RV_OK);
	assert_int_equal(metrics_write_end(m, &(struct metrics_end){.loss = INFINITY, .state = {{0xab}}}, NULL), RV_OK);
	assert_int_equal(
		metrics_write_run(
			m,
			&(struct metrics_run){
				.name = "a\"b", .role = "lab", .method = "ddp", .codec = "fp32", .outer = "none", .device = "cpu"},
			NULL),
		RV_OK);
	rv_json_lines_close(m);
	uint8_t *text;
	size_t n;
	assert_int_equal(rv_file_read(path, 1 << 16, &text, &n, NULL), RV_OK);
	assert_non_null(strstr((char *)text, "\"train_loss\":null"));
	assert_non_null(strstr((char *)text, "\"chain\":null"));
	assert_non_null(strstr((char *)text, "\"loss\":null"));
	assert_non_null(strstr((char *)text, "\"state\":\"ab00"));
	assert_non_null(strstr((char *)text, "\"name\":\"a\\\"b\""));
	free(text);
}

static void test_faults(void **state) {
	(void)state;
	struct rv_json_lines *m;
	struct rv_errtext et = {0};
	assert_fault(rv_json_lines_open("/nonexistent/m", false, &m, &et), RV_E_NOTFOUND, &et, "/nonexistent/m");
	if (rv_json_lines_open("/dev/full", true, &m, &et) == RV_OK) {
		assert_fault(metrics_write_eval(m, &(struct metrics_eval){0}, &et), RV_E_FULL, &et, "/dev/full");
		rv_json_lines_close(m);
	}
}

static void test_formula(void **state) {
	(void)state;
	assert_int_equal(metrics_allreduce_bytes(1000, 1), 0);
	assert_int_equal(metrics_allreduce_bytes(1000, 2), 1000);
	assert_int_equal(metrics_allreduce_bytes(1000, 4), 1500);
	assert_int_equal(metrics_allreduce_bytes(1000, 3), 1334);
	assert_int_equal(metrics_rows_bytes(1000, 1000, 4000, 4, 1), 1500);
	/* 2 x 2: in each of two rows one payload each way; a vector of sums, and one of means. */
	assert_int_equal(metrics_rows_bytes(1000, 1000, 4000, 4, 2), (2 * 2000 + 5000) / 4);
	assert_int_equal(metrics_rows_bytes(1000, 1000, 4000, 1024, 32), (992 * 2000 + 31 * 5000 + 1023) / 1024);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_tokens_of_a_round),
		cmocka_unit_test(test_a_torn_line_is_ended),
		cmocka_unit_test(test_the_end_is_the_last_whole_line),
		cmocka_unit_test(test_what_json_cannot_say_is_null),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_formula),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
