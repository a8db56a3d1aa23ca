/* Runs whose audits could find nothing are refused, and rounds that nobody audits are told. */
#include "base/run_audits.h"
#include "tests/common/check.h"

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
}

static void rounds_that_cannot_be_audited_are_refused(void **state) {
	(void)state;
	set("audit-chunks", "1");
	expect_refused(false, "audit-chunks with min-workers = 1");
	set("min-workers", "2");
	expect_refused(false, "audit-chunks with min-workers = 2");
	set("min-workers", "9");
	set("row-size", "8");
	expect_refused(false, "min-workers = 9 and row-size = 8");
	set("row-size", "9");
	assert_int_equal(run_audits_check(&c, false, NULL), RV_OK);
}

static void rounds_that_are_not_audited_are_told(void **state) {
	(void)state;
	struct rv_errtext why;
	set("audit-chunks", "1");
	set("row-size", "8");
	for (int n = 1; n < 20; n++)
		assert_int_equal(run_audits_lack(&c, n, &why), n < 3 || n > 8);
	assert_non_null(strstr(why.text, "19 workers take part, more than row-size = 8"));
	assert_true(run_audits_lack(&c, 2, &why));
	assert_non_null(strstr(why.text, "fewer than 3"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_audits_nothing_is_needed, setup),
		cmocka_unit_test_setup(averages_that_nobody_can_merge_again_are_refused, setup),
		cmocka_unit_test_setup(training_on_unknown_text_is_refused, setup),
		cmocka_unit_test_setup(rounds_that_cannot_be_audited_are_refused, setup),
		cmocka_unit_test_setup(rounds_that_are_not_audited_are_told, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
