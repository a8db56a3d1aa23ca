/* test_worker_options.c: what --check says of the files that the options name. */
#include "tests/train/train_fixture.h"
#include "worker/options/input_checks.h"
#include "worker/options/options.h"

#include <stdio.h>
#include <string.h>

struct scene {
	char dir[256];
	struct worker_options o;
	struct rv_args args; /* as if a link had been given */
};

static struct scene scene;

static int setup(void **state) {
	static uint8_t text[40000]; /* two blocks of 16 KiB, one of them held out, are the least */
	char path[300];
	*state = &scene;
	memset(&scene, 0, sizeof scene);
	memset(text, 'a', sizeof text);
	scratch_make(scene.dir, sizeof scene.dir);
	fixture_write(scene.dir, "a.txt", text, sizeof text, path, sizeof path);
	fixture_write(scene.dir, "b.txt", text, sizeof text, path, sizeof path);
	scene.args = (struct rv_args){.at = {"rivulet://h:1/x"}, .n = 1};
	snprintf(scene.o.device, sizeof scene.o.device, "auto");
	snprintf(scene.o.dir, sizeof scene.o.dir, "%s/worker", scene.dir);
	snprintf(scene.o.data, sizeof scene.o.data, "%s/a.txt", scene.dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(scene.dir);
	return 0;
}

static void is_fine(void) {
	assert_ok(worker_options_check_files(&scene.o, &scene.args, &et));
}

static void fails_with(enum rv_err want, const char *part) {
	struct rv_errtext et = {0};
	assert_fault(worker_options_check_files(&scene.o, &scene.args, &et), want, &et, part);
}

/* The range that --help shows is the one that holds. */
static void a_cap_is_none_or_not_tiny(void **state) {
	(void)state;
	static const char *const caps[] = {"max-up", "max-down", "max-donate"};
	struct rv_errtext et = {0};
	for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
		assert_int_equal(rv_options_set(worker_options_table, &scene.o, caps[i], "0", &et), RV_OK);
		assert_int_equal(rv_options_set(worker_options_table, &scene.o, caps[i], "100kbit", &et), RV_OK);
		assert_fault(rv_options_set(worker_options_table, &scene.o, caps[i], "1kbit", &et), RV_E_RANGE, &et,
					 "1kbit: must be in [100kbit, 100gbit], or 0");
	}
}

static void text_may_be_a_file_a_directory_a_pattern_or_elsewhere(void **state) {
	(void)state;
	is_fine();
	snprintf(scene.o.data, sizeof scene.o.data, "%s", scene.dir);
	is_fine();
	snprintf(scene.o.data, sizeof scene.o.data, "%s/*.txt", scene.dir);
	is_fine();
	snprintf(scene.o.data, sizeof scene.o.data, "https://nowhere.invalid/text");
	is_fine();
}

static void text_that_is_not_there_is_named(void **state) {
	(void)state;
	snprintf(scene.o.data, sizeof scene.o.data, "%s/*.md", scene.dir);
	fails_with(RV_E_NOTFOUND, "--data");
	snprintf(scene.o.data, sizeof scene.o.data, "%s/c.txt", scene.dir);
	fails_with(RV_E_NOTFOUND, "c.txt");
}

static void a_tokenizer_is_read(void **state) {
	(void)state;
	snprintf(scene.o.tokenizer, sizeof scene.o.tokenizer, "bytes");
	is_fine();
	snprintf(scene.o.tokenizer, sizeof scene.o.tokenizer, "%s/nothing.json", scene.dir);
	fails_with(RV_E_NOTFOUND, "--tokenizer");
	snprintf(scene.o.tokenizer, sizeof scene.o.tokenizer, "%s/a.txt", scene.dir);
	fails_with(RV_E_INVALID, "a.txt");
}

static void initial_weights_are_looked_at(void **state) {
	(void)state;
	snprintf(scene.o.init, sizeof scene.o.init, "%s/nothing", scene.dir);
	fails_with(RV_E_NOTFOUND, "--init");
	snprintf(scene.o.init, sizeof scene.o.init, "%s", scene.dir); /* no weights in it */
	fails_with(RV_E_NOTFOUND, "--init");
}

static void run_refuses(const struct run_config *run, const char *tokenizer, enum rv_err want, const char *part) {
	struct rv_errtext et = {0};
	assert_fault(input_check_run_data(run, scene.o.data, tokenizer, &et), want, &et, part);
}

/* 40,000 bytes: enough for one shard with every second block held out, not for two. */
static void text_is_held_against_the_run(void **state) {
	(void)state;
	struct run_config run = fixture_config();
	run.vocab = 256;
	run.holdout_every = 2;
	run.data_shards = 1;
	/* None is a mistake, unless the run hands it out. */
	struct rv_errtext why = {0};
	assert_fault(input_check_run_data(&run, "", "", &why), RV_E_INVALID, &why, "does not hand it out");
	memset(run.data_hash, 'a', sizeof run.data_hash - 1);
	assert_ok(input_check_run_data(&run, "", "", &et));
	run.data_hash[0] = '\0';
	assert_ok(input_check_run_data(&run, scene.o.data, "", &et));
	run.data_shards = 2;
	run_refuses(&run, "", RV_E_RANGE, "data-shards = 2");
	run.data_shards = 1;
	memset(run.tokenizer_hash, 'a', sizeof run.tokenizer_hash - 1);
	run.tokenizer_hash[sizeof run.tokenizer_hash - 1] = '\0';
	run_refuses(&run, "", RV_E_INVALID, "--tokenizer");
	run_refuses(&run, "bytes", RV_E_INVALID, "bytes");
}

static void relay_rate_is(const char *text, int64_t bytes_per_s) {
	int64_t rate = -1;
	assert_ok(rv_options_set(worker_options_table, &scene.o, "relay-for-others", text, &et));
	assert_ok(worker_options_relay_rate(&scene.o, &rate, &et));
	assert_int_equal(rate, bytes_per_s);
}

static void relay_rate_is_refused(const char *text, enum rv_err want, const char *part) {
	int64_t rate = -1;
	struct rv_errtext et = {0};
	assert_int_equal(rv_options_set(worker_options_table, &scene.o, "relay-for-others", text, &et), RV_OK);
	assert_fault(worker_options_relay_rate(&scene.o, &rate, &et), want, &et, part);
}

static void a_relay_for_others_has_a_rate(void **state) {
	(void)state;
	relay_rate_is("none", 0);
	relay_rate_is("0", 0);
	relay_rate_is("5mbit", 625000);
	relay_rate_is_refused("unlimited", RV_E_INVALID, "must be a rate such as 5mbit, or none");
	relay_rate_is_refused("5mbiit", RV_E_INVALID, "relay-for-others = 5mbiit");
	relay_rate_is_refused("1kbit", RV_E_RANGE, "must be in [100kbit, 100gbit]");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(text_may_be_a_file_a_directory_a_pattern_or_elsewhere),
		T(text_that_is_not_there_is_named),
		T(a_tokenizer_is_read),
		T(initial_weights_are_looked_at),
		T(a_cap_is_none_or_not_tiny),
		T(a_relay_for_others_has_a_rate),
		T(text_is_held_against_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
