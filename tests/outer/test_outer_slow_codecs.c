/* Codecs by which a worker with a slow line may send, and what is refused. */
#include "outer/global.h"
#include "outer/slow_codecs.h"
#include "tests/common/check.h"

#include <string.h>

static struct run_config run_of(const char *codec, const char *slow, double feedback) {
	struct run_config run;
	run_config_defaults(&run);
	run.slow_members = SLOW_COARSER;
	run.error_feedback = feedback;
	assert_int_equal(rv_options_set(run_config_options, &run, "codec", codec, NULL), RV_OK);
	assert_int_equal(rv_options_set(run_config_options, &run, "slow-codec", slow, NULL), RV_OK);
	return run;
}

static void check(const char *codec, const char *slow, double feedback, const char *want) {
	const struct run_config run = run_of(codec, slow, feedback);
	const struct slow_codecs s = slow_codecs_of(&run);
	char names[128] = "";
	for (int i = 0; i < s.n; i++)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? " " : "", s.step[i]->name);
	assert_string_equal(names, want);
	assert_int_equal(slow_codecs_check(&run, NULL), s.n > 0 ? RV_OK : RV_E_INVALID);
}

static void test_the_coarser_ones_in_order(void **state) {
	(void)state;
	check("int8", "auto", 0, "int4");
	check("fp32", "auto", 0, "int16 int8 int4");
	check("int8", "auto", 0.95, "int4 topk128 topk64 topk32");
	check("topk64", "auto", 0.95, "topk32");
	check("int8", "topk64", 0, "topk64"); /* named: as the operator wants */
	check("int4", "auto", 0, "");
	check("int4", "int8", 0.95, "");
	check("topk32", "auto", 0.95, "");
	struct run_config waits = run_of("int8", "auto", 0);
	waits.slow_members = SLOW_PART;
	assert_int_equal(slow_codecs_of(&waits).n, 0);
	assert_int_equal(slow_codecs_check(&waits, NULL), RV_OK);
}

static void refused(const char *codec, const char *slow, double feedback, const char *text) {
	const struct run_config run = run_of(codec, slow, feedback);
	struct rv_errtext et = {0};
	assert_int_equal(global_check_run(&run, &et), RV_E_INVALID);
	if (strstr(et.text, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, et.text);
}

static void test_impossible_ones_are_refused_with_the_remedy(void **state) {
	(void)state;
	refused("topk32", "auto", 0.95, "no codec is coarser than codec = topk32");
	refused("int4", "auto", 0, "lost without error-feedback; set error-feedback = 0.95");
	refused("int4", "int8", 0, "slow-codec = int8 is not coarser than codec = int4");
	refused("int8", "int8", 0, "slow-codec = int8 is not coarser than codec = int8");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_coarser_ones_in_order),
		cmocka_unit_test(test_impossible_ones_are_refused_with_the_remedy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
