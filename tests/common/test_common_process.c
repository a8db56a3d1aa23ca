/* Programs that a test runs: what they print, how they end, what they are started with. */
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/process.h"
#include "tests/common/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SH(line) ((const char *const[]){"/bin/sh", "-c", line, NULL})

static char dir[64];
static struct process p;

static int set_up(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	(void)snprintf(p.log, sizeof p.log, "%s/log", dir);
	return 0;
}

static void its_output_and_its_end_are_returned(void **state) {
	char out[8];
	(void)state;
	assert_int_equal(process_run(out, sizeof out, SH("echo out; echo err >&2; exit 3")), 3);
	assert_string_equal(out, "out\nerr");
	assert_int_equal(process_shell(out, sizeof out, "kill -%d $$", SIGKILL), 128 + SIGKILL);
	assert_int_equal(process_shell(out, sizeof out, "seq 100000"), 0); /* more than a pipe holds */
	assert_string_equal(out, "1\n2\n3\n4");
	assert_int_equal(process_run(out, sizeof out, (const char *const[]){"no-such-program", NULL}), 127);
}

static void it_is_started_as_set_up(void **state) {
	const struct process_setup setup = {.env = {"A=1", "B=2"}, .file_limit = 6};
	(void)state;
	process_start(&p, SH("echo $A$B; echo more than six bytes || exit 9"), &setup);
	process_assert_exit(&p, 9);
	char *log = scratch_read(p.log, NULL);
	assert_memory_equal(log, "12\n", 3);
	assert_int_equal(strlen(log), 6);
	free(log);
}

static void a_frozen_one_is_killed(void **state) {
	int status;
	(void)state;
	process_start(&p, SH("sleep 1000"), NULL);
	assert_false(process_has_ended(&p));
	process_freeze(&p);
	assert_false(process_try_wait(&p, &status));
	process_kill(&p);
	assert_int_equal(p.pid, 0);
	process_kill(&p); /* nothing */
}

static void a_file_or_the_end_is_waited_for(void **state) {
	char path[80];
	int status = 0;
	(void)state;
	(void)snprintf(path, sizeof path, "%s/file", dir);
	setenv("FILE_TO_MAKE", path, 1);
	process_start(&p, SH("exit 4"), NULL);
	assert_false(process_await_file(&p, path, &status));
	assert_int_equal(status, 4);
	process_start(&p, SH("sleep 0.1; echo here >$FILE_TO_MAKE; sleep 1000"), NULL);
	assert_true(process_await_file(&p, path, &status));
	process_kill(&p);
}

static void a_deadline_ends_a_wait(void **state) {
	(void)state;
	const struct deadline over = deadline_in(-1, "nothing"), later = deadline_in(1000, "nothing");
	assert_true(deadline_is_over(&over));
	assert_false(deadline_is_over(&later));
	deadline_pause(&later);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_output_and_its_end_are_returned),
		cmocka_unit_test(it_is_started_as_set_up),
		cmocka_unit_test(a_frozen_one_is_killed),
		cmocka_unit_test(a_file_or_the_end_is_waited_for),
		cmocka_unit_test(a_deadline_ends_a_wait),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
