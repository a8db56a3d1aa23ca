/* The FILE of a sweep: sections over what is common, the command line over both, cells that
 * sections share, and what is refused, with its line. */
#include "lab/sweep/run.h"
#include "tests/lab/sweep_fixture.h"

#include <stdio.h>
#include <string.h>

static struct sweep_fixture f;
static struct sweep_file file;
static struct sweep sweep;
static char path[400];

static void set(const char *name, const char *value) {
	sweep_fixture_set(&f, name, value);
}

static int setup(void **state) {
	(void)state;
	char out[300];
	sweep_fixture_init(&f);
	snprintf(out, sizeof out, "%s/out", f.lab.dir);
	set("out", out);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	sweep_release(&sweep);
	sweep_file_release(&file);
	sweep_fixture_release(&f);
	return 0;
}

static enum rv_err read(const char *text, struct rv_errtext *et) {
	fixture_write(f.lab.dir, "plan.sweep", (const uint8_t *)text, strlen(text), path, sizeof path);
	return sweep_file_read(path, &f.options, &file, et);
}

static void open_all(const char *text) {
	struct rv_errtext et = {0};
	if (read(text, &et) != RV_OK || sweep_open(&file, &sweep, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void refused(const char *text, enum rv_err want, const char *needle) {
	struct rv_errtext et = {0};
	enum rv_err e = read(text, &et);
	if (e == RV_OK)
		e = sweep_open(&file, &sweep, &et);
	assert_fault(e, want, &et, needle);
	sweep_release(&sweep);
	sweep_file_release(&file);
}

static void test_without_a_file(void **state) {
	(void)state;
	set("workers", "1,2");
	assert_int_equal(sweep_file_read(NULL, &f.options, &file, NULL), RV_OK);
	assert_int_equal(file.n, 1);
	assert_int_equal(sweep_open(&file, &sweep, NULL), RV_OK);
	assert_int_equal(sweep.n_cells, 2);
	assert_string_equal(sweep.cells[1].label, "workers=2");
}

static void test_sections_are_products_of_their_own(void **state) {
	(void)state;
	open_all("workers = 2 # of all\nrounds = 2\nreplicas-mode = fixed-tokens\nseed = 1,2\n\n"
			 "[interval]   # a comment\nsync-every = 3,6\n"
			 "[codec]\nsync-every = 3\ncodec = fp32\n"
			 "  [more-tokens]\nreplicas-mode = fixed-steps\nsync-every = 3\nseed = 7");
	assert_int_equal(file.n, 3);
	assert_int_equal(sweep.n_cells, 4 + 2 + 1);
	assert_string_equal(sweep.cells[3].label, "interval steps-per-round=6 seed=2");
	assert_string_equal(sweep.rows[5].section, "codec");
	assert_string_equal(sweep.rows[5].codec, "fp32");
	assert_int_equal(sweep.rows[0].batch, 4);
	assert_int_equal(sweep.rows[6].batch, 8);
	assert_int_equal(sweep.rows[6].seed, 7);
	assert_string_equal(sweep.cells[6].label, "more-tokens");
}

static void test_a_shared_cell_is_there_once(void **state) {
	(void)state;
	open_all("rounds = 2\nsync-every = 3\n[a]\nworkers = 1,2\n[b]\nworkers = 2,4\n[c]\ncodec = int8,fp32\n");
	assert_int_equal(sweep.n_cells, 2 + 1 + 1); /* c: int8 with 4 workers is b's */
	assert_string_equal(sweep.rows[1].section, "a");
	assert_string_equal(sweep.rows[2].section, "b");
	assert_string_equal(sweep.rows[3].codec, "fp32");
}

static void test_the_command_line_wins(void **state) {
	(void)state;
	set("seed", "5");
	set("lr", "0.01");
	set("replicas-mode", "fixed-steps");
	set("jobs", "0");
	open_all("out = elsewhere\njobs = 3\nreplicas-mode = fixed-tokens\n"
			 "rounds = 2\nsync-every = 3\nseed = 1,2\nlr = 0.5\n[a]\nlr = 0.25\nworkers = 1\n[b]\nseed = 3\n");
	assert_int_equal(sweep.n_cells, 2);
	assert_int_equal(sweep.opts->jobs, 0);
	assert_string_not_equal(sweep.opts->out, "elsewhere");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sweep.rows[i].batch, 8);
		assert_int_equal(sweep.rows[i].seed, 5);
		assert_true(sweep.cells[i].opts.run.lr == 0.01);
	}
}

static void test_what_neither_gives(void **state) {
	(void)state;
	f.options.out[0] = '\0';
	assert_int_equal(read("rounds = 2\nreplicas-mode = fixed-tokens\nworkers = 2\n", NULL), RV_OK);
	assert_string_equal(file.parts[0].out, "runs/sweep");
	assert_int_equal(file.parts[0].replicas_mode, SWEEP_REPLICAS_FIXED_TOKENS);
	assert_int_equal(file.parts[0].jobs, 0);
	sweep_file_release(&file);
	assert_int_equal(read("out = there\njobs = 3\n", NULL), RV_OK);
	assert_string_equal(file.parts[0].out, "there");
	assert_int_equal(file.parts[0].replicas_mode, SWEEP_REPLICAS_FIXED_STEPS);
	assert_int_equal(file.parts[0].jobs, 3);
}

static void test_a_preset_is_under_what_is_given(void **state) {
	(void)state;
	set("rounds", "2");
	set("context", "32");
	open_all("preset = llama-nano\n[a]\nseed = 1\n[b]\npreset = nano\nvocab = 300\n");
	assert_int_equal(sweep.n_cells, 2);
	const struct run_config *a = &sweep.cells[0].opts.run, *b = &sweep.cells[1].opts.run;
	assert_true(a->model != b->model && a->n_inner == 384 && b->n_inner == 0);
	assert_true(a->n_layer == 1 && a->context == 32); /* as the command line has them */
	assert_true(a->vocab == 256 && b->vocab == 300);
	sweep_release(&sweep);
	sweep_file_release(&file);
	refused("preset = llama-nani\n", RV_E_INVALID, "preset llama-nani: unknown; did you mean llama-nano?");
}

static void test_what_is_refused(void **state) {
	(void)state;
	refused("rounds = 2\n\n[a\n", RV_E_INVALID, "plan.sweep:3: a section is [name]");
	refused("[]\n", RV_E_INVALID, "plan.sweep:1: a section is [name]");
	refused("[a] b\n", RV_E_INVALID, "plan.sweep:1: a section is [name]");
	refused("[a]\n[b]\n[a]\n", RV_E_INVALID, "plan.sweep:3: section [a] occurs twice");
	refused("[a-name-of-more-than-thirty-one-characters]\n", RV_E_RANGE, "more than 31 characters");
	refused("[a]\nrounds = 2\n[b]\nworkres = 2\n", RV_E_INVALID, "plan.sweep:4: workres: unknown option");
	refused("[a]\nrounds = 2\nrounds = 3\n", RV_E_INVALID, "plan.sweep:3: rounds is set twice");
	refused("[a]\nrounds = 2\n[b]\njobs = 2\n", RV_E_INVALID, "section [b]: jobs holds for the whole sweep");
	refused("[a]\n[b]\nlr = a lot\n", RV_E_INVALID, "section [b]");
	refused("seed = 1,01\n[a]\n", RV_E_INVALID, "these are the same run: a seed=1; a seed=01");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_without_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sections_are_products_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_shared_cell_is_there_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_command_line_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_neither_gives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_preset_is_under_what_is_given, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
