/* The options of `rivulet train`: the table is whole, and what is wrong is refused before anything
 * starts. */
#include "lab/methods/methods.h"
#include "tests/lab/lab_fixture.h"

#include "base/option_value.h"
#include "lab/commands/commands.h"
#include "lab/options/idle.h"
#include "lab/options/train_difference.h"
#include "lab/options/train_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct lab_fixture f;
static struct rv_option table[TRAIN_OPTIONS_MAX];
static struct train_options o;
static const struct rv_args no_args;

static void set(const char *name, const char *value) {
	assert_int_equal(rv_options_set(table, &o, name, value, NULL), RV_OK);
}

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	train_options_table(table, TRAIN_OPTIONS_MAX);
	rv_options_defaults(table, &o);
	snprintf(o.data, sizeof o.data, "%s/text", f.dir);
	set("context", "16"); /* the text is small */
	set("holdout-every", "4");
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void refused(enum rv_err want, const char *why) {
	struct rv_errtext et = {0};
	assert_fault(train_options_check(&o, &no_args, &et), want, &et, why);
}

static void test_defaults_are_valid(void **state) {
	(void)state;
	assert_int_equal(train_options_check(&o, &no_args, NULL), RV_OK);
	struct lab_config c = train_options_resolve(&o);
	assert_ptr_equal(c.method, &lab_method_diloco);
	assert_int_equal(c.workers, 4);
	assert_int_equal(c.threads, 1);
	assert_true(c.parallel >= 1);
	assert_false(rv_hash_is_zero(&c.run_hash));
}

/* The configuration, and nothing of the lab, decides the nameless run's hash. */
static void test_run_hash(void **state) {
	(void)state;
	struct rv_hash first = train_options_resolve(&o).run_hash, other;
	set("parallel", "3");
	set("name", "x");
	other = train_options_resolve(&o).run_hash;
	assert_hashes_equal(first, other);
	set("lr", "0.5");
	other = train_options_resolve(&o).run_hash;
	assert_hashes_not_equal(first, other);
	set("run-hash", "ab00000000000000000000000000000000000000000000000000000000000001");
	other = train_options_resolve(&o).run_hash;
	assert_int_equal(other.b[0], 0xab);
	assert_int_equal(other.b[31], 1);
}

static void test_ddp_uses_all_cores(void **state) {
	(void)state;
	set("method", "ddp");
	struct lab_config c = train_options_resolve(&o);
	assert_ptr_equal(c.method, &lab_method_ddp);
	assert_true(c.threads >= 1);
	set("threads", "3");
	assert_int_equal(train_options_resolve(&o).threads, 3);
}

static void test_refusals(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	assert_fault(rv_options_set(table, &o, "codec", "int7", &et), RV_E_INVALID, &et, "int8|int16|fp32");
	assert_fault(rv_options_set(table, &o, "outer", "lion", &et), RV_E_INVALID, &et, "nesterov|sgd|average");
	set("run-hash", "abc");
	refused(RV_E_INVALID, "64 hex digits");
	set("run-hash", "");
	set("n-embd", "130");
	refused(RV_E_RANGE, "n-head");
	set("n-embd", "128");
	set("data", "/nonexistent/text");
	refused(RV_E_NOTFOUND, "/nonexistent/text");
	set("data", "");
}

/* What a method or a machine of one process cannot do says so, with what helps. */
static void test_policies(void **state) {
	(void)state;
	set("dylu", "yes");
	refused(RV_E_INVALID, "give --speeds");
	set("speeds", "1:0.5");
	assert_int_equal(train_options_check(&o, &no_args, NULL), RV_OK);
	struct lab_config c = train_options_resolve(&o);
	assert_true(c.dylu && c.speeds[0] == 1 && c.speeds[1] == 0.5 && c.speeds[3] == 0.5 && c.step_ms == 100);
	set("method", "easgd");
	set("mix", "0.9");
	refused(RV_E_INVALID, "speeds belongs to --method diloco");
	set("speeds", "");
	set("dylu", "no");
	set("attackers", "1");
	refused(RV_E_INVALID, "give both");
	set("attack", "shift=2");
	refused(RV_E_INVALID, "shift");
	set("attack", "scale=2000000");
	refused(RV_E_RANGE, "scale");
	set("attack", "scale=-4");
	set("attackers", "5");
	refused(RV_E_RANGE, "attackers = 5: of workers = 4");
	set("attackers", "2");
	refused(RV_E_INVALID, "not to easgd");
	set("attackers", "0");
	set("attack", "");
	set("method", "fedavg");
	set("merge", "trimmed");
	refused(RV_E_INVALID, "needs at least 3 workers");
	set("min-workers", "4");
	assert_int_equal(train_options_check(&o, &no_args, NULL), RV_OK);
	set("min-workers", "1");
	set("merge", "mean");
	set("mix", "0");
	set("round-ms", "10s");
	refused(RV_E_INVALID, "use --speeds and --step-ms");
	set("round-ms", "0");
	struct rv_errtext what = {0};
	assert_false(train_options_only_warm_up(&o, &what));
	o.run.warmup_steps = o.run.rounds * o.run.steps_per_round;
	assert_true(train_options_only_warm_up(&o, &what));
	assert_non_null(strstr(what.text, "the learning rate never reaches lr = "));
	o.run.warmup_steps = 0;
	set("replicas-mode", "fixed-tokens");
	set("workers", "3");
	refused(RV_E_RANGE, "not a multiple of workers = 3");
	set("workers", "4");
	assert_int_equal(train_options_resolve(&o).run.batch, 2); /* of 8 */
}

static void test_late_updates(void **state) {
	(void)state;
	set("method", "eager");
	assert_int_equal(train_options_check(&o, &no_args, NULL), RV_OK);
	assert_true(train_options_resolve(&o).run.eager_share == 0.25);
	set("drop-sync", "0.5");
	refused(RV_E_INVALID,
			"drop-sync belongs to --method diloco and its kind, without overlap-steps and with updates = waited");
	set("drop-sync", "0");
	set("outer", "adam");
	refused(RV_E_INVALID, "updates = eager with outer = adam");
	set("method", "delayed");
	assert_int_equal(train_options_check(&o, &no_args, NULL), RV_OK);
	set("outer", "nesterov");
	set("updates", "eager");
	set("eager-share", "0.25");
	refused(RV_E_INVALID, "method delayed has updates = delayed: for updates = eager use --method diloco");
	set("updates", "delayed");
	assert_int_equal(train_options_check(&o, &no_args, NULL), RV_OK);
	set("method", "eager");
	refused(RV_E_INVALID, "method eager has updates = eager: for updates = delayed use --method diloco");
	set("method", "ddp");
	refused(RV_E_INVALID, "updates belong to --method diloco and its kind, not to ddp");
	set("method", "fedopt");
	set("updates", "eager");
	refused(RV_E_INVALID, "updates = eager with outer = adam");
}

static void test_data_is_required(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	struct train_options fresh;
	memset(&fresh, 0, sizeof fresh);
	rv_options_defaults(table, &fresh);
	assert_fault(rv_options_check_required(table, &fresh, &et), RV_E_INVALID, &et, "data");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* run.conf says what runs, and makes the same run when it is given again. */
static void test_what_is_written_is_what_runs(void **state) {
	(void)state;
	static const struct {
		const char *method, *name, *runs_as;
	} settled[] = {{"eager", "updates", "eager"}, {"delayed", "updates", "delayed"}, {"fedavg", "outer", "average"},
				   {"fedopt", "outer", "adam"},   {"sparseloco", "codec", "topk64"}, {"diloco", "updates", "waited"},
				   {"ddp", "outer", "nesterov"},  {"easgd", "updates", "waited"}};
	for (size_t i = 0; i < sizeof settled / sizeof *settled; i++) {
		char text[RV_OPTION_TEXT_BYTES] = "";
		struct rv_errtext what = {0};
		set("mix", strcmp(settled[i].method, "easgd") == 0 ? "0.9" : "0");
		set("method", settled[i].method);
		struct train_options again = train_options_as_run(&o);
		for (const struct rv_option *opt = table; opt->name; opt++)
			if (strcmp(opt->name, settled[i].name) == 0)
				rv_option_value_print(opt, &again, text);
		assert_string_equal(text, settled[i].runs_as);
		if (train_options_check(&again, &no_args, &what) != RV_OK)
			fail_msg("%s: %s", settled[i].method, what.text);
		assert_int_equal(train_idle_text(&again, &what), train_idle_text(&o, &what));
		struct lab_config one = train_options_resolve(&o), other = train_options_resolve(&again);
		assert_memory_equal(&one.run_hash, &other.run_hash, sizeof one.run_hash); /* of the configuration's text */
	}
}

static void differs(const char *conf, const char *want) {
	char file[300], got[RV_ERRTEXT_BYTES];
	const struct train_options as_run = train_options_as_run(&o);
	fixture_write(f.dir, "run.conf", (const uint8_t *)conf, strlen(conf), file, sizeof file);
	train_difference(f.dir, &as_run, got, sizeof got);
	assert_string_equal(got, want);
}

/* What makes it another run, and no option that has no effect there. */
static void test_what_differs(void **state) {
	(void)state;
	set("lr", "0.25");
	set("step-ms", "125");
#define LIKE_OURS "context = 16\nholdout-every = 4\n"
	differs(LIKE_OURS "lr = 0.5\nname = x\nthreads = 2\n", "lr 0.5 there, 0.25 here");
	differs(LIKE_OURS "lr = 0.25\nstep-ms = 75\n", "");
	set("speeds", "1:0.5");
	differs(LIKE_OURS "lr = 0.25\nstep-ms = 75\nspeeds = 1:0.5\ndylu = yes\n",
			"dylu yes there, no here; step-ms 75 there, 125 here");
	differs(LIKE_OURS "lr = 0.25\nstep-ms = 125\nspeeds = 1:0.5:1:0.5\n", ""); /* another way to say it */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_defaults_are_valid), TEST(test_run_hash),
		TEST(test_ddp_uses_all_cores), TEST(test_refusals),
		TEST(test_data_is_required),   TEST(test_policies),
		TEST(test_late_updates),       TEST(test_what_is_written_is_what_runs),
		TEST(test_what_differs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
