/* What a method has no use for is said, and sets no cells of a sweep apart. */
#include "tests/lab/lab_fixture.h"

#include "base/run_config_idle.h"
#include "lab/commands/commands.h"
#include "lab/methods/methods.h"
#include "lab/options/idle.h"
#include "lab/sweep/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;
static struct rv_option table[TRAIN_OPTIONS_MAX];
static struct train_options o;

static int setup(void **state) {
	(void)state;
	train_options_table(table, TRAIN_OPTIONS_MAX);
	rv_options_defaults(table, &o);
	return 0;
}

static void set(const char *name, const char *value) {
	assert_int_equal(rv_options_set(table, &o, name, value, NULL), RV_OK);
}

static void idle(int n, const char *needle) {
	struct rv_errtext what = {0};
	assert_int_equal(train_idle_text(&o, &what), n);
	if (!strstr(what.text, needle))
		fail_msg("\"%s\" does not say \"%s\"", what.text, needle);
}

static void test_data_parallel(void **state) {
	(void)state;
	set("codec", "int4");
	set("outer-lr", "0.5");
	set("weight-by-tokens", "yes");
	set("error-feedback", "0.9");
	idle(0, "");
	set("method", "ddp");
	idle(4, "codec = int4 has no effect here: it belongs to the outer loop, of --method diloco and its kind");
	set("method", "demo");
	idle(3, "outer-lr = 0.5");
	set("clip", "3");
	idle(4, "clip = 3 has no effect here: it belongs to an inner optimizer, and method demo has none");
}

/* A method that chooses the outer optimizer chooses what belongs to it. */
static void test_presets(void **state) {
	(void)state;
	set("method", "fedavg");
	set("outer-lr", "0.5");
	idle(1, "outer = nesterov, sgd, adam, yogi, adagrad or delayed_nesterov");
	set("method", "easgd");
	set("mix", "0.9");
	idle(1, "easgd's centre moves by (1 - mix) x workers");
	set("method", "lookahead");
	set("workers", "1");
	idle(0, "");
	set("mix", "0");
	set("eager-share", "0.5");
	set("method", "eager");
	idle(0, "");
	set("method", "delayed");
	idle(1, "eager-share = 0.5 has no effect here: it belongs to updates = eager");
}

static void test_policies(void **state) {
	(void)state;
	set("late", "discard");
	set("step-ms", "5");
	idle(2, "late = discard has no effect here: it belongs to --drop-sync, --speeds and --lines");
	set("drop-sync", "0.5");
	idle(1, "step-ms = 5 has no effect here: it belongs to --speeds");
	set("min-workers", "3");
	set("grace-ms", "7");
	idle(3, "min-workers = 3 has no effect here: it belongs to --speeds");
	set("speeds", "1:2");
	idle(0, "");
	set("move-owners", "0.1");
	idle(1, "move-owners = 0.1 has no effect here: it belongs to --mean-feedback");
	set("mean-feedback", "1");
	idle(0, "");
	set("mean-codec", "fp32");
	idle(1, "mean-feedback = 1 has no effect here: it belongs to a mean-codec that loses something");
}

/* Every name that is spoken of is an option. */
static void test_names_are_options(void **state) {
	(void)state;
	static const char *const names[] = {"outer", "mean-codec", "chunk-elems", "late", "mix", "error-feedback", "beta2"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const struct rv_option *option = table;
		while (option->name && strcmp(option->name, names[i]) != 0)
			option++;
		assert_non_null(option->name);
		assert_true(method_idle(&lab_method_ddp, names[i]) || method_idle(&lab_method_demo, names[i]));
	}
	assert_null(method_idle(NULL, "outer"));
	assert_null(method_idle(&lab_method_diloco, "outer"));
}

/* ---- sweeps ---- */

static int setup_sweep(void **state) {
	lab_fixture_init(&f);
	return setup(state);
}

static int teardown_sweep(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void open_sweep(const char *text, struct sweep_file *file, struct sweep *s, struct rv_errtext *et,
					   enum rv_err want) {
	static struct sweep_options given;
	char path[400], all[1024];
	struct rv_option lists[SWEEP_OPTIONS_MAX];
	snprintf(all, sizeof all,
			 "data = %s/text\nout = %s/out\nn-layer = 1\nn-head = 2\nn-embd = 16\ncontext = 16\nholdout-every = 4\n%s",
			 f.dir, f.dir, text);
	fixture_write(f.dir, "plan", (const uint8_t *)all, strlen(all), path, sizeof path);
	sweep_options_table(lists, SWEEP_OPTIONS_MAX);
	memset(&given, 0, sizeof given);
	rv_options_defaults(lists, &given);
	assert_int_equal(sweep_file_read(path, &given, file, et), RV_OK);
	assert_int_equal(sweep_open(file, s, et), want);
}

static void test_cells_that_differ_in_nothing_that_counts_are_one(void **state) {
	(void)state;
	struct sweep_file file;
	struct sweep s;
	struct rv_errtext et = {0};
	open_sweep("method = diloco,ddp\nouter = nesterov,average\ncodec = int8,fp32\n", &file, &s, &et, RV_OK);
	assert_int_equal(s.n_cells, 5); /* four of diloco, one of ddp */
	assert_int_equal(s.n_merged, 3);
	sweep_release(&s);
	sweep_file_release(&file);
	open_sweep("method = diloco,ddp\nsteps-per-round = 1,2,8\ntotal-steps = 16\nseed = 1,2\n", &file, &s, &et, RV_OK);
	assert_int_equal(s.n_cells, 8); /* six of diloco, two of ddp */
	assert_int_equal(s.n_merged, 4);
	sweep_release(&s);
	sweep_file_release(&file);
	open_sweep("method = ddp\nsteps-per-round = 1,2\nrounds = 4\n", &file, &s, &et, RV_OK);
	assert_int_equal(s.n_cells, 2); /* one trains for longer */
	sweep_release(&s);
	sweep_file_release(&file);
	open_sweep("min-workers = 1,3\n", &file, &s, &et, RV_OK);
	assert_int_equal(s.n_cells, 1);
	assert_int_equal(s.n_merged, 1);
	sweep_release(&s);
	sweep_file_release(&file);
	open_sweep("min-workers = 1,3\nworkers = 2\n", &file, &s, &et, RV_E_RANGE);
	assert_non_null(strstr(et.text, "min-workers = 3: a round of workers = 2 never has enough"));
	sweep_file_release(&file);
	open_sweep("method = ddp\nmin-workers = 3\nworkers = 1\n", &file, &s, &et, RV_OK); /* a baseline has no rounds */
	sweep_release(&s);
	sweep_file_release(&file);
	open_sweep("lr = 0.01,0.010\n", &file, &s, &et, RV_E_INVALID);
	assert_non_null(strstr(et.text, "these are the same run"));
	sweep_file_release(&file);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

static void test_what_a_method_settles(void **state) {
	(void)state;
	assert_string_equal(method_settles(&lab_method_eager, 2, "updates", "eager"), "waited");
	assert_string_equal(method_settles(&lab_method_fedavg, 2, "outer", "average"), "nesterov");
	assert_string_equal(method_settles(&lab_method_eager, 2, "eager-share", "0.5"), "0");
	assert_null(method_settles(&lab_method_eager, 2, "eager-share", "0.25"));
	assert_null(method_settles(&lab_method_diloco, 2, "outer", "nesterov")); /* everybody's default */
	assert_null(method_settles(&lab_method_eager, 2, "outer", "nesterov"));
	assert_null(method_settles(&lab_method_fedopt, 2, "outer", "yogi")); /* somebody's choice */
	assert_null(method_settles(&lab_method_eager, 2, "method", "eager"));
	assert_null(method_settles(&lab_method_fedavg, 2, "tied", "yes")); /* the default, written as run.conf has it */
	assert_null(method_settles(NULL, 2, "updates", "eager"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_data_parallel),
		TEST(test_presets),
		TEST(test_policies),
		TEST(test_names_are_options),
		TEST(test_what_a_method_settles),
		cmocka_unit_test_setup_teardown(test_cells_that_differ_in_nothing_that_counts_are_one, setup_sweep,
										teardown_sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
