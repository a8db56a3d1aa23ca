/* Options that a run has no use for are found, with what they belong to; those that it has are
 * not. */

#include "base/run_config_idle.h"
#include "tests/common/check.h"

#include <string.h>

static struct run_config c;
static struct idle_text room;

static int setup(void **state) {
	(void)state;
	run_config_defaults(&c);
	return 0;
}

static void set(const char *name, const char *value) {
	assert_int_equal(rv_options_set(run_config_options, &c, name, value, NULL), RV_OK);
}

static int idle(struct rv_errtext *what) {
	return run_config_idle_text(&c, what);
}

static void test_defaults_say_nothing(void **state) {
	(void)state;
	struct rv_errtext what;
	assert_int_equal(idle(&what), 0);
	assert_string_equal(what.text, "");
}

static void test_outer_loop(void **state) {
	(void)state;
	struct rv_errtext what;
	set("outer-momentum", "0.9");
	assert_int_equal(idle(&what), 0);
	set("outer", "average");
	assert_int_equal(idle(&what), 1);
	assert_string_equal(what.text, "outer-momentum = 0.9 has no effect here: it belongs to outer = nesterov, "
								   "adam, yogi, adagrad or delayed_nesterov");
	set("outer-lr", "0.5");
	set("outer-beta2", "0.5");
	set("outer-eps", "0.5");
	set("outer-delay", "3");
	assert_int_equal(idle(&what), 5);
	set("outer", "adagrad");
	assert_int_equal(idle(&what), 2);
	assert_non_null(strstr(what.text, "outer-beta2"));
	assert_non_null(strstr(what.text, "outer = delayed_nesterov"));
	set("outer", "sgd");
	assert_null(run_config_idle(&c, "outer-lr", &room));
	assert_non_null(run_config_idle(&c, "outer-momentum", &room));
	assert_non_null(run_config_idle(&c, "eager-share", &room));
	set("updates", "eager");
	assert_null(run_config_idle(&c, "eager-share", &room));
}

static void test_inner_loop_and_model(void **state) {
	(void)state;
	struct rv_errtext what;
	set("muon-momentum", "0.5");
	set("rope-theta", "5000");
	assert_int_equal(idle(&what), 2);
	assert_non_null(strstr(what.text, "rope-theta = 5e+03 has no effect here: it belongs to model = llama"));
	set("inner", "muon");
	set("model", "llama");
	assert_int_equal(idle(&what), 0);
	set("rope-factor", "2");
	assert_int_equal(idle(&what), 1);
	set("rope-scaling", "linear");
	set("rope-low-freq", "2");
	assert_int_equal(idle(&what), 1);
	set("rope-scaling", "llama3");
	assert_int_equal(idle(&what), 0);
	set("inner", "sgd");
	set("beta1", "0.5");
	assert_int_equal(idle(&what), 2);
}

/* Members lease sequences of a published text, and share out text that they bring. */
static void test_data(void **state) {
	(void)state;
	struct rv_errtext what;
	set("data-from", "own");
	set("data-shards", "7");
	set("data-split", "contiguous");
	assert_int_equal(idle(&what), 1);
	assert_string_equal(what.text, "data-from = own has no effect here: it belongs to data-hash");
	set("data-hash", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
	assert_int_equal(idle(&what), 2);
	assert_non_null(strstr(what.text, "data-shards = 7 has no effect here: it belongs to text that members bring"));
	assert_non_null(strstr(what.text, "data-split = contiguous"));
}

static void test_a_text_that_is_too_long_is_cut(void **state) {
	(void)state;
	struct rv_errtext what;
	static const char *const names[] = {"outer-lr",    "outer-momentum", "outer-beta2",
										"outer-eps",   "muon-momentum",  "rope-theta",
										"rope-factor", "rope-low-freq",  "rope-high-freq"};
	set("outer", "average");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		set(names[i], strncmp(names[i], "rope", 4) == 0 ? "5" : "0.5");
	assert_int_equal(idle(&what), sizeof names / sizeof names[0]);
	assert_int_equal(strlen(what.text), RV_ERRTEXT_BYTES - 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults_say_nothing, setup),
		cmocka_unit_test_setup(test_outer_loop, setup),
		cmocka_unit_test_setup(test_inner_loop_and_model, setup),
		cmocka_unit_test_setup(test_data, setup),
		cmocka_unit_test_setup(test_a_text_that_is_too_long_is_cut, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
