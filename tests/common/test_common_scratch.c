/* Temporary directories: they are gone when their process has ended, however that was. */
#include "base/assert.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char home[64];

static int set_up(void **state) {
	(void)state;
	scratch_make(home, sizeof home);
	return setenv("TMPDIR", home, 1);
}

static void fails(void **state) {
	(void)state;
	fail();
}

static void crashes(void **state) {
	(void)state;
	(void)raise(SIGSEGV); /* CMocka turns it into a failure */
}

static void aborts(void **state) {
	char dir[128];
	(void)state;
	scratch_make_in_memory(dir, sizeof dir);
	scratch_write(home, "in-memory", dir, strlen(dir));
	RV_ASSERT(dir[0] == 'x');
}

/* In a child process: a test that makes a directory with something in it, and then ends so. */
static int end_in_child(void (*test)(void **state)) {
	int status;
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char dir[128], deep[140];
		assert_non_null(freopen("/dev/null", "w", stdout));
		assert_non_null(freopen("/dev/null", "w", stderr));
		scratch_make(dir, sizeof dir);
		(void)snprintf(deep, sizeof deep, "%s/deep", dir);
		assert_int_equal(mkdir(deep, 0700), 0);
		scratch_write(deep, "file", "x", 1);
		const struct CMUnitTest tests[] = {{"test", test, NULL, NULL, NULL}};
		exit(cmocka_run_group_tests(tests, NULL, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_failed_test_leaves_nothing(void **state) {
	(void)state;
	assert_int_equal(WEXITSTATUS(end_in_child(fails)), 1);
	assert_int_equal(scratch_count(home), 0);
	assert_int_equal(WEXITSTATUS(end_in_child(crashes)), 1);
	assert_int_equal(scratch_count(home), 0);
}

static void an_assertion_that_does_not_hold_leaves_nothing(void **state) {
	struct stat st;
	char path[80];
	(void)state;
	assert_int_equal(WTERMSIG(end_in_child(aborts)), SIGABRT);
	assert_int_equal(scratch_count(home), 1);
	(void)snprintf(path, sizeof path, "%s/in-memory", home);
	char *in_memory = scratch_read(path, NULL);
	assert_int_equal(stat(in_memory, &st), -1);
	free(in_memory);
	scratch_empty(home);
}

static void exits(void **state) {
	(void)state;
	exit(0);
}

/* What the parent has made stays when a child ends that has made nothing, or something. */
static void a_child_removes_only_its_own(void **state) {
	char dir[128];
	(void)state;
	scratch_make(dir, sizeof dir);
	assert_int_equal(end_in_child(exits), 0);
	const pid_t pid = fork();
	if (pid == 0)
		exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(scratch_count(home), 1);
	scratch_remove(dir);
	assert_int_equal(scratch_count(home), 0);
}

static void files_are_read_whole_and_damaged_at_a_byte(void **state) {
	static const char bytes[] = "a\0\xff\nb";
	char path[80];
	size_t n;
	(void)state;
	scratch_write(home, "f", bytes, 5);
	(void)snprintf(path, sizeof path, "%s/f", home);
	scratch_flip(path, 0);
	scratch_flip(path, -1);
	char *got = scratch_read(path, &n);
	assert_int_equal(n, 5);
	assert_memory_equal(got, "`\0\xff\nc", 6);
	free(got);
	assert_null(scratch_read("/no/such/file", &n));
	scratch_empty(home);
}

int main(void) {
	(void)unsetenv("RIVULET_KEEP");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_test_leaves_nothing),
		cmocka_unit_test(an_assertion_that_does_not_hold_leaves_nothing),
		cmocka_unit_test(a_child_removes_only_its_own),
		cmocka_unit_test(files_are_read_whole_and_damaged_at_a_byte),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
