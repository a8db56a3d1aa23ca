/* Reading metrics.jsonl: what was written comes back; repeated rounds, torn and foreign lines. */
#include "tests/lab/lab_fixture.h"

#include "lab/run/run_record.h"
#include "tests/lab/metrics_text.h"

#include <math.h>
#include <stdio.h>
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

static void append(const char *text) {
	FILE *f = fopen(path, "a");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_round_trip(void **state) {
	(void)state;
	struct run_record r;
	write_metrics(path, "me", "worker", "diloco", 2, 4, 9);
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_string_equal(r.name, "me");
	assert_string_equal(r.role, "worker");
	assert_int_equal(r.member, 2);
	assert_int_equal(r.workers, 4);
	assert_int_equal(r.n_rounds, 9);
	assert_int_equal(r.n_evals, 9);
	assert_true(r.ended && r.final_loss == 1.5);
	struct record_totals t = run_record_totals(&r);
	assert_true(fabs(t.compute_s - 18) < 1e-9 && fabs(t.reduce_s - 4.5) < 1e-9 && fabs(t.idle_s - 2.25) < 1e-9);
	assert_int_equal(t.steps, 90);
	assert_int_equal(t.tokens, 36000);
	assert_true(t.loss == 1.5);
	assert_true(t.formula_bytes == 9 * 1500 && t.bytes_sent == 9 * 1515);
	assert_true(run_record_ddp_bytes(&r) == 1.5 * 4000 * 90);
	run_record_release(&r);
}

static void test_later_lines_win(void **state) {
	(void)state;
	struct run_record r;
	write_metrics(path, "me", "lab", "diloco", 0, 4, 6);
	append("{\"kind\":\"run\",\"version\":1,\"name\":\"again\",\"workers\":4}\n"
		   "{\"kind\":\"eval\",\"round\":4,\"tokens\":7,\"loss\":0.5,\"bytes_sent\":1}\n"
		   "{\"kind\":\"round\",\"round\":5,\"tokens\":7}\n"
		   "{\"kind\":\"tune\",\"of\":\"another version\"}\n{\"no\":1}\n[]\n"
		   "{\"kind\":\"eval\",\"rou"); /* the power went */
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_string_equal(r.name, "again");
	assert_int_equal(r.n_evals, 4);
	assert_true(r.evals[3].loss == 0.5);
	assert_int_equal(r.n_rounds, 5);
	assert_int_equal(r.rounds[4].tokens, 7);
	run_record_release(&r);
}

static void test_rounds_that_were_taken_back(void **state) {
	(void)state;
	struct run_record r;
	write_metrics(path, "me", "worker", "diloco", 0, 4, 6);
	append("{\"kind\":\"rollback\",\"round\":2,\"from_round\":6,\"term\":1,\"tokens\":8000}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.n_rounds, 2);
	assert_int_equal(r.n_evals, 2);
	assert_false(r.ended);
	assert_true(isnan(r.final_loss));
	run_record_release(&r);
	append("{\"kind\":\"round\",\"round\":3,\"tokens\":12001}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.n_rounds, 3);
	assert_int_equal(r.rounds[2].tokens, 12001);
	run_record_release(&r);
}

/* Lines were lost between the first rounds and the last line: its sums are those of the run. */
static void test_the_end_has_the_sums(void **state) {
	(void)state;
	struct run_record r;
	write_metrics(path, "me", "lab", "diloco", 0, 4, 2);
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(run_record_missing(&r, 2), 0);
	assert_int_equal(run_record_missing(&r, 3), 3);
	run_record_release(&r);
	append("{\"kind\":\"end\",\"round\":40,\"tokens\":160000,\"loss\":1.5,\"bytes_sent\":60600,"
		   "\"formula_bytes\":60000}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	struct record_totals t = run_record_totals(&r);
	assert_int_equal(t.rounds, 40);
	assert_int_equal(t.steps, 400);
	assert_int_equal(t.tokens, 160000);
	assert_true(t.bytes_sent == 60600 && t.formula_bytes == 60000 && t.loss == 1.5);
	assert_int_equal(run_record_missing(&r, t.rounds), 3);
	run_record_release(&r);
	append("{\"kind\":\"round\",\"round\":1,\"tokens\":7}\n{\"kind\":\"round\",\"round\":3,\"tokens\":9}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(run_record_missing(&r, 3), 2);
	run_record_release(&r);
}

static void test_torn_lines_are_skipped(void **state) {
	(void)state;
	struct run_record r;
	write_metrics(path, "me", "worker", "diloco", 0, 2, 3);
	append("{\"kind\":\"round\",\"rou\n{\"kind\":\"round\",\"round\":4,\"tokens\":7}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.skipped_lines, 1);
	assert_int_equal(r.n_rounds, 4);
	assert_int_equal(r.rounds[3].tokens, 7);
	run_record_release(&r);
}

static void test_refusals(void **state) {
	(void)state;
	struct run_record r;
	struct rv_errtext et = {0};
	assert_fault(run_record_read("/nonexistent/m", &r, &et), RV_E_NOTFOUND, &et, "/nonexistent/m");
	remove(path);
	append("{\"kind\":\"end\"}\n");
	assert_fault(run_record_read(path, &r, &et), RV_E_CORRUPT, &et, "\"run\"");
}

/* A run that is tried again after it has diverged is under way until its file says otherwise. */
static void test_diverged(void **state) {
	(void)state;
	struct run_record r;
	remove(path);
	append("{\"kind\":\"run\",\"name\":\"x\"}\n{\"kind\":\"round\",\"round\":1,\"tokens\":9}\n"
		   "{\"kind\":\"diverged\",\"round\":2,\"worker\":null,\"step\":4,\"wall_us\":2000000}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.diverged_round, 2);
	assert_false(r.ended);
	assert_true(r.wall_s == 2);
	assert_int_equal(run_record_totals(&r).tokens, 9);
	run_record_release(&r);
	append("{\"kind\":\"run\",\"name\":\"x\"}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.diverged_round, 0);
	run_record_release(&r);
}

/* Of a later version: it may mean something else by the same names. */
static void test_a_later_version_is_refused(void **state) {
	(void)state;
	struct run_record r;
	struct rv_errtext et = {0};
	remove(path);
	append("{\"kind\":\"run\",\"version\":1,\"name\":\"x\",\"program\":\"rivulet 9\",\"data\":\"sha256:00\"}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_string_equal(r.program, "rivulet 9");
	assert_string_equal(r.data, "sha256:00");
	run_record_release(&r);
	append("{\"kind\":\"run\",\"version\":2,\"name\":\"x\"}\n");
	assert_int_equal(run_record_read(path, &r, &et), RV_E_UNSUPPORTED);
	assert_non_null(
		strstr(et.text, "line 2: metrics of a later version than 1: read them with the release that wrote"));
}

/* The curve ends in the number of the end; one that was begun on other held-out tokens does not go
 * on. */
static void test_a_curve_is_of_one_text(void **state) {
	(void)state;
	struct run_record r;
	remove(path);
	append("{\"kind\":\"run\",\"version\":1,\"name\":\"x\"}\n"
		   "{\"kind\":\"eval\",\"round\":1,\"loss\":9,\"eval_tokens\":100}\n"
		   "{\"kind\":\"eval\",\"round\":2,\"loss\":3,\"eval_tokens\":200}\n"
		   "{\"kind\":\"round\",\"round\":3}\n"
		   "{\"kind\":\"eval\",\"round\":3,\"loss\":2,\"eval_tokens\":200}\n"
		   "{\"kind\":\"end\",\"round\":3,\"loss\":2}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.n_evals, 2);
	assert_int_equal(r.eval_tokens, 200);
	assert_true(r.evals[1].loss == r.final_loss && run_record_totals(&r).loss == 2);
	run_record_release(&r);
}

static void test_no_loss_yet(void **state) {
	(void)state;
	struct run_record r;
	remove(path);
	append("{\"kind\":\"run\",\"name\":\"x\"}\n{\"kind\":\"eval\",\"round\":1,\"loss\":null}\n");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_int_equal(r.n_evals, 0);
	assert_true(isnan(run_record_totals(&r).loss));
	assert_true(run_record_ddp_bytes(&r) == 0);
	run_record_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_later_lines_win),
		cmocka_unit_test(test_rounds_that_were_taken_back),
		cmocka_unit_test(test_the_end_has_the_sums),
		cmocka_unit_test(test_torn_lines_are_skipped),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_a_later_version_is_refused),
		cmocka_unit_test(test_a_curve_is_of_one_text),
		cmocka_unit_test(test_no_loss_yet),
		cmocka_unit_test(test_diverged),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
