/* Runs whose audits could find nothing are refused, and rounds that nobody audits are told. */
#include "base/rows.h"
#include "base/run_audits.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct run_config c;

static int setup(void **state) {
	(void)state;
	run_config_defaults(&c);
	return 0;
}

static void set(const char *name, const char *value) {
	assert_int_equal(rv_options_set(run_config_options, &c, name, value, NULL), RV_OK);
}

static void expect_refused(bool publishes, const char *text) {
	struct rv_errtext et;
	assert_int_equal(run_audits_check(&c, publishes, &et), RV_E_INVALID);
	if (strstr(et.text, text) == NULL)
		fail_msg("%s", et.text);
}

/* The run can go back by the whole window, whichever round of it is the first that was spoiled. */
static void snapshots_reach_back_by_the_window(void **state) {
	(void)state;
	static const char *const cases[][3] = {
		{"8", "4", "2"}, {"8", "8", "2"}, {"4", "8", "3"}, {"1", "15", "16"}, {"8", "9", "3"}};
	assert_int_equal(run_audits_least_snapshots(&c), 1);
	set("audit-chunks", "2");
	assert_int_equal(run_audits_least_snapshots(&c), 1);
	set("audit-rollback", "true");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		set("snapshot-every", cases[i][0]);
		set("audit-window", cases[i][1]);
		assert_int_equal(run_audits_least_snapshots(&c), atoi(cases[i][2]));
	}
}

static void without_audits_nothing_is_needed(void **state) {
	(void)state;
	struct rv_errtext why;
	assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
	for (int n = 1; n < 100; n++)
		assert_false(run_audits_lack(&c, n, &why));
}

static void averages_that_nobody_can_merge_again_are_refused(void **state) {
	(void)state;
	set("min-workers", "4");
	set("audit-chunks", "2");
	assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
	set("merge", "centered");
	expect_refused(false, "audit-chunks = 2 with merge = centered");
	set("merge", "clipped");
	set("mean-feedback", "0.9");
	expect_refused(false, "audit-chunks = 2 with mean-feedback");
}

static void training_on_unknown_text_is_refused(void **state) {
	(void)state;
	set("min-workers", "3");
	set("audit-training", "0.02");
	expect_refused(false, "audit-training = 0.02 without data-hash");
	assert_int_equal(run_audits_check(&c, true, NULL), RV_OK);
	memset(c.data_hash, 'a', sizeof c.data_hash - 1);
	assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
	set("data-from", "own");
	expect_refused(false, "audit-training = 0.02 with data-from = own");
}

static void steps_that_nobody_can_repeat_are_refused(void **state) {
	static const char *const prevent[][3] = {{"overlap-steps", "2", "overlap-steps or late updates"},
											 {"mix", "0.5", "mix"},
											 {"prox-mu", "0.1", "prox-mu"},
											 {"error-feedback", "0.9", "error-feedback"},
											 {"slow-members", "skip", "slow-members"},
											 {"fragments", "2", "fragments"},
											 {"audit-training", "0", "audit-training = 0"}};
	for (size_t i = 0; i < sizeof prevent / sizeof prevent[0]; i++) {
		char text[64];
		(void)setup(state);
		set("min-workers", "3");
		set("audit-training", "0.02");
		set("audit-repeat", "0.25");
		memset(c.data_hash, 'a', sizeof c.data_hash - 1);
		assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
		assert_true(run_config_is_repeated(&c));
		set(prevent[i][0], prevent[i][1]);
		assert_false(run_config_is_repeated(&c));
		(void)snprintf(text, sizeof text, "audit-repeat = 0.25 with %s:", prevent[i][2]);
		expect_refused(false, text);
	}
}

static void rounds_that_cannot_be_audited_are_refused(void **state) {
	(void)state;
	set("audit-chunks", "1");
	expect_refused(false, "audit-chunks with min-workers = 1");
	set("min-workers", "2");
	expect_refused(false, "audit-chunks with min-workers = 2");
	set("min-workers", "9");
	set("row-size", "4");
	expect_refused(false, "min-workers = 9 and row-size = 4");
	set("row-size", "8");
	assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
}

static void training_is_audited_in_rows_of_three(void **state) {
	(void)state;
	struct rv_errtext why;
	set("audit-training", "0.1");
	memset(c.data_hash, 'a', sizeof c.data_hash - 1);
	set("min-workers", "9");
	set("row-size", "3");
	assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
	set("row-size", "2");
	expect_refused(false, "rows of fewer than 3");
	set("row-size", "3");
	set("audit-chunks", "1");
	expect_refused(false, "averages of rows of fewer than 4");
	set("audit-chunks", "0");
	for (int n = 1; n < 20; n++)
		assert_int_equal(run_audits_lack(&c, n, &why), n < 3 || n == 4);
	assert_true(run_audits_lack(&c, 4, &why));
	assert_non_null(strstr(why.text, "4 workers take part in rows of fewer than 3"));
}

static void rounds_that_are_not_audited_are_told(void **state) {
	(void)state;
	struct rv_errtext why;
	set("audit-chunks", "1");
	set("row-size", "8");
	for (int n = 1; n < 20; n++)
		assert_int_equal(run_audits_lack(&c, n, &why), n < 3);
	set("row-size", "4");
	for (int n = 1; n < 20; n++) /* nine in rows of three, seven in rows of four and three */
		assert_int_equal(run_audits_lack(&c, n, &why), n < 3 || (n > 4 && n / rows_choose(n, 4) < 4));
	assert_true(run_audits_lack(&c, 9, &why));
	assert_non_null(strstr(why.text, "9 workers take part in rows of fewer than 4"));
	assert_true(run_audits_lack(&c, 2, &why));
	assert_non_null(strstr(why.text, "fewer than 3"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(snapshots_reach_back_by_the_window, setup),
		cmocka_unit_test_setup(without_audits_nothing_is_needed, setup),
		cmocka_unit_test_setup(averages_that_nobody_can_merge_again_are_refused, setup),
		cmocka_unit_test_setup(training_on_unknown_text_is_refused, setup),
		cmocka_unit_test_setup(rounds_that_cannot_be_audited_are_refused, setup),
		cmocka_unit_test_setup(steps_that_nobody_can_repeat_are_refused, setup),
		cmocka_unit_test_setup(training_is_audited_in_rows_of_three, setup),
		cmocka_unit_test_setup(rounds_that_are_not_audited_are_told, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
