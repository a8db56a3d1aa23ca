/* Cells of a sweep: the product of lists, names that depend on what decides a result and on nothing
 * else, refusals. */
#include "base/option_value.h"
#include "lab/commands/commands.h"
#include "lab/sweep/memory.h"
#include "tests/lab/sweep_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sweep_fixture f;
static struct sweep_grid g;

static void set(const char *name, const char *value) {
	sweep_fixture_set(&f, name, value);
}

/* As if it had not been given. */
static void leave_out(const char *name) {
	for (const struct rv_option *o = f.table; o->name; o++)
		if (strcmp(o->name, name) == 0)
			rv_option_value_unset(o, &f.options);
}

static int setup(void **state) {
	(void)state;
	sweep_fixture_init(&f);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	sweep_grid_release(&g);
	sweep_fixture_release(&f);
	return 0;
}

static struct sweep_cell cell(int i) {
	struct sweep_cell c;
	struct rv_errtext et = {0};
	enum rv_err e = sweep_grid_cell(&g, i, &c, &et);
	if (e != RV_OK)
		fail_msg("%s", et.text);
	return c;
}

static void refused(enum rv_err want, const char *needle) {
	struct rv_errtext et = {0};
	struct sweep_cell c;
	enum rv_err e = sweep_grid_make(&f.options, &g, &et);
	for (int i = 0; e == RV_OK && i < g.n_cells; i++)
		e = sweep_grid_cell(&g, i, &c, &et);
	assert_fault(e, want, &et, needle);
}

static void test_the_product(void **state) {
	(void)state;
	set("workers", "1, 2,4");
	set("sync-every", "2,8");
	set("total-steps", "16");
	set("outer", "sgd");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	assert_int_equal(g.n_cells, 6);
	assert_int_equal(g.n_axes, 2);
	int seen[5][9] = {{0}};
	for (int i = 0; i < g.n_cells; i++) {
		struct sweep_cell c = cell(i);
		assert_int_equal(c.opts.run.outer, OUTER_sgd);
		assert_int_equal(c.opts.run.rounds * c.opts.run.steps_per_round, 16);
		assert_int_equal(seen[c.opts.workers][c.opts.run.steps_per_round]++, 0);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(cell(j).id, c.id);
	}
	assert_string_equal(cell(1).label, "workers=1 steps-per-round=8");
}

static void test_fixed_tokens_divides_the_batch(void **state) {
	(void)state;
	set("workers", "1,4");
	set("batch", "8");
	set("replicas-mode", "fixed-tokens");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	assert_int_equal(cell(0).opts.run.batch, 8);
	assert_int_equal(cell(1).opts.run.batch, 2);
	sweep_grid_release(&g);
	set("workers", "3");
	refused(RV_E_RANGE, "batch = 8 is not a multiple of workers = 3");
}

/* Places are no part of a name; the text is, and so is every option. */
static void test_names(void **state) {
	(void)state;
	char other[400];
	set("seed", "1,2");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	struct sweep_cell first = cell(0);
	assert_string_not_equal(cell(1).id, first.id);
	sweep_grid_release(&g);
	set("out", "elsewhere");
	set("seed", "1");
	set("steps-per-round", "30"); /* the default, given */
	set("save-every", "3");
	set("short-of-memory", "warn");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	assert_string_equal(cell(0).id, first.id);
	assert_int_equal(cell(0).opts.save_every, 3);
	sweep_grid_release(&g);
	uint8_t bytes[8 * DATA_BLOCK];
	memset(bytes, 'x', sizeof bytes);
	fixture_write(f.lab.dir, "other", bytes, sizeof bytes, other, sizeof other);
	set("data", other);
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	assert_string_not_equal(cell(0).id, first.id);
}

/* To the byte, whatever this machine has. */
static void test_what_fits(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	set("device", "cpu"); /* of a GPU the cell itself asks */
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	struct sweep_cell c = cell(0);
	const size_t need = sweep_cell_memory(&c);
	struct memory_room room = {.device = SIZE_MAX, .host = need};
	assert_true(need > 0);
	assert_int_equal(sweep_cell_fit(&c, &room, NULL), RV_OK);
	room.host = need - 1;
	assert_fault(sweep_cell_fit(&c, &room, &et), RV_E_NOMEM, &et, "training needs ");
	room.swap = 1;
	assert_int_equal(sweep_cell_fit(&c, &room, NULL), RV_OK);
	sweep_grid_release(&g);
	set("short-of-memory", "warn");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	c = cell(0);
	assert_int_equal(sweep_cell_fit(&c, &(struct memory_room){.host = 1}, NULL), RV_OK);
}

/* The words give the same run when `rivulet train` reads them. */
static void test_the_command_gives_the_cell_back(void **state) {
	(void)state;
	struct sweep_command c;
	static struct train_options back;
	struct rv_option train[TRAIN_OPTIONS_MAX];
	const char *args[4];
	int n_args = 0;
	set("lr", "0.0005,0.003");
	set("workers", "2");
	set("late", "discard");
	set("drop-sync", "0.25");
	set("weight-by-tokens", "yes");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	struct sweep_cell want = cell(1);
	sweep_cell_command(&want, "rivulet", "runs/x", &c);
	assert_string_equal(c.words[1], "train");
	train_options_table(train, TRAIN_OPTIONS_MAX);
	rv_options_defaults(train, &back);
	assert_int_equal(rv_options_parse_argv(train, NULL, &back, c.n - 1, c.words + 1, args, 4, &n_args, NULL), RV_OK);
	assert_int_equal(n_args, 0);
	assert_memory_equal(&back.run, &want.opts.run, sizeof back.run);
	assert_int_equal(back.workers, 2);
	assert_string_equal(back.data, f.text);
	assert_non_null(strstr(back.out, want.id));
	assert_true(back.eval_replicas);
}

/* Cells with the same name have the same command: else one could not go on where the other was
 * stopped. */
static void test_what_has_no_effect_is_not_in_the_command(void **state) {
	(void)state;
	static struct sweep_command a, b;
	set("method", "ddp");
	set("codec", "int8,int4");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	struct sweep_cell one = cell(0), other = cell(1);
	assert_string_equal(one.id, other.id);
	memcpy(other.label, one.label, sizeof other.label);
	sweep_cell_command(&one, "rivulet", "runs/x", &a);
	sweep_cell_command(&other, "rivulet", "runs/x", &b);
	assert_int_equal(a.n, b.n);
	for (int i = 0; i < a.n; i++)
		assert_string_equal(a.words[i], b.words[i]);
}

static void test_a_file_gives_what_the_command_line_does_not(void **state) {
	(void)state;
	static struct sweep_options file;
	rv_options_defaults(f.table, &file);
	assert_int_equal(
		rv_options_parse_text(f.table, &file, "f", "workers = 1,2\nsync-every = 3\ntotal-steps = 9\n", NULL), RV_OK);
	set("workers", "4");
	sweep_options_fill(&f.options, &file);
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	assert_int_equal(g.n_cells, 1);
	assert_int_equal(cell(0).opts.workers, 4);
	assert_int_equal(cell(0).opts.run.rounds, 3);
}

static void test_what_is_refused(void **state) {
	(void)state;
	set("workers", "1,,2");
	refused(RV_E_INVALID, "value 2 of the list is missing");
	set("workers", "2,2");
	refused(RV_E_INVALID, "workers: 2 is in the list twice");
	set("workers", "1,99");
	refused(RV_E_RANGE, "workers = 99");
	set("workers", "1,2");
	set("outer", "sgd,nestrov");
	refused(RV_E_INVALID, "nestrov");
	leave_out("outer");
	set("sync-every", "3");
	set("steps-per-round", "3");
	refused(RV_E_INVALID, "are the same: give one of them");
	leave_out("steps-per-round");
	set("total-steps", "10");
	refused(RV_E_RANGE, "total-steps = 10 is not a multiple of steps-per-round = 3");
	set("rounds", "3");
	refused(RV_E_INVALID, "total-steps and rounds");
	leave_out("rounds");
	set("total-steps", "0");
	set("sync-every", "3,6");
	refused(RV_E_INVALID, "--total-steps N");
}

/* A script's variable that is empty is no list; --speeds '' is what train takes, too. */
static void test_an_empty_list_is_refused(void **state) {
	(void)state;
	static const char *const lists[] = {"seed", "outer", "lr", "sync-every", "workers"};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct rv_errtext et = {0};
		assert_fault(rv_options_set(f.table, &f.options, lists[i], "", &et), RV_E_INVALID, &et,
					 "= (nothing): give it a value, or leave it out");
		assert_memory_equal(et.text, lists[i], strlen(lists[i]));
	}
	set("speeds", "");
	assert_int_equal(sweep_grid_make(&f.options, &g, NULL), RV_OK);
	assert_int_equal(g.n_cells, 1);
}

static void test_too_many_cells(void **state) {
	(void)state;
	char list[SWEEP_LIST_BYTES] = "1";
	for (int i = 2; i <= 60; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), ",%d", i);
	set("seed", list);
	set("workers", list);
	set("steps-per-round", list);
	refused(RV_E_RANGE, "more than 10000 cells");
}

/* What the help says of options is so: every one of train's is here, or is named as not being
 * here. */
static void test_the_help_names_what_is_not_here(void **state) {
	(void)state;
	struct rv_option train[TRAIN_OPTIONS_MAX], mine[SWEEP_OPTIONS_MAX];
	const struct rv_command command = sweep_command_of(mine);
	train_options_table(train, TRAIN_OPTIONS_MAX);
	for (const struct rv_option *o = train; o->name; o++) {
		char name[64];
		bool here = false;
		for (const struct rv_option *m = command.options; m->name; m++)
			here = here || strcmp(m->name, o->name) == 0;
		snprintf(name, sizeof name, "--%s", o->name);
		if (!here && !strstr(command.details, name))
			fail_msg("%s: not an option of sweep, and its help does not say so", name);
	}
	assert_non_null(strstr(command.details, "511 characters"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_product, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fixed_tokens_divides_the_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_command_gives_the_cell_back, setup, teardown),
		cmocka_unit_test(test_the_help_names_what_is_not_here),
		cmocka_unit_test_setup_teardown(test_what_has_no_effect_is_not_in_the_command, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_file_gives_what_the_command_line_does_not, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_empty_list_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_cells, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
