/* Cells as child processes: as many at a time as cores and memory allow, how they ended, and what
 * reaches them. */
#include "tests/lab/lab_fixture.h"

#include "lab/sweep/pool.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static char dir[256], log_path[300];

static int setup(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	snprintf(log_path, sizeof log_path, "%s/log", dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void start(struct sweep_pool *p, int cell, size_t memory_bytes, const char *command) {
	const char *const words[] = {"/bin/sh", "-c", command, NULL};
	assert_int_equal(sweep_pool_start(p, cell, memory_bytes, (char *const *)(uintptr_t)words, log_path, NULL), RV_OK);
}

static int wait_for(struct sweep_pool *p, int *cell) {
	int status;
	while (!sweep_pool_reap(p, cell, &status))
		usleep(1000);
	return status;
}

/* One always may, however large it is; a second only where cores and memory have room for it. */
static void test_room(void **state) {
	(void)state;
	struct sweep_pool p = {.jobs = 2, .memory_bytes = 100};
	int cell;
	assert_true(sweep_pool_has_room(&p, 1000));
	start(&p, 7, 60, "read forever </dev/null; exit 0");
	assert_true(sweep_pool_has_room(&p, 40));
	assert_false(sweep_pool_has_room(&p, 41));
	assert_false(sweep_pool_has_room(&p, SIZE_MAX));
	start(&p, 8, 40, "exit 0");
	assert_false(sweep_pool_has_room(&p, 0)); /* two jobs */
	assert_int_equal(wait_for(&p, &cell), 0);
	assert_int_equal(wait_for(&p, &cell), 0);
	assert_int_equal(p.n_running, 0);
	assert_int_equal(p.used_bytes, 0);
	start(&p, 9, SIZE_MAX, "exit 0"); /* alone: more than there is */
	assert_false(sweep_pool_has_room(&p, 1));
	assert_int_equal(wait_for(&p, &cell), 0);
	assert_int_equal(cell, 9);
}

static void test_how_they_ended(void **state) {
	(void)state;
	struct sweep_pool p = {.jobs = 3, .memory_bytes = SIZE_MAX};
	char text[64];
	int cell;
	start(&p, 1, 1, "echo said; echo told >&2; exit 3");
	assert_int_equal(wait_for(&p, &cell), 3);
	assert_int_equal(cell, 1);
	FILE *f = fopen(log_path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, "said\ntold\n");
	start(&p, 2, 1, "kill -STOP $$; exit 0");
	sweep_pool_signal(&p, SIGKILL);
	assert_int_equal(wait_for(&p, &cell), 128 + SIGKILL);
	const char *const missing[] = {"/nonexistent/program", NULL};
	assert_int_equal(sweep_pool_start(&p, 3, 1, (char *const *)(uintptr_t)missing, log_path, NULL), RV_OK);
	assert_int_equal(wait_for(&p, &cell), 127);
	struct rv_errtext et = {0};
	assert_fault(sweep_pool_start(&p, 3, 1, (char *const *)(uintptr_t)missing, "/nonexistent/log", &et), RV_E_NOTFOUND,
				 &et, "/nonexistent/log");
	assert_int_equal(p.n_running, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_how_they_ended),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
