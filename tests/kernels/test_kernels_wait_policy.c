/* test_kernels_wait_policy.c: a program that does not say how threads wait is executed once more
 * with threads that sleep, under its own name and with its own arguments; one that says it is left
 * alone. */
#include "kernels/wait_policy.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

/* What the program says of itself when it is started with `name=value` and nothing else of the
 * kind. */
static void ask(const char *name, const char *value, char out[256]) {
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)unsetenv("OMP_WAIT_POLICY");
		(void)unsetenv("GOMP_SPINCOUNT");
		if (name != NULL)
			(void)setenv(name, value, 1);
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl(program, "another name", "say", "with spaces", (char *)NULL);
		_exit(127);
	}
	(void)close(ends[1]);
	size_t n = 0;
	for (ssize_t got; n < 255 && (got = read(ends[0], out + n, 255 - n)) > 0;)
		n += (size_t)got;
	out[n] = '\0';
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_it_is_chosen_where_nobody_has(void **state) {
	(void)state;
	char said[256];
	ask(NULL, NULL, said);
#ifdef WITH_OPENMP
	assert_non_null(strstr(said, "policy: passive\n"));
#else
	assert_non_null(strstr(said, "policy: -\n"));
#endif
	assert_non_null(strstr(said, "called: another name\n"));
	assert_non_null(strstr(said, "argument: with spaces\n"));
	assert_non_null(strstr(said, "known as: test_kernels_wa\n")); /* the kernel keeps 15 characters */
}

static void test_a_choice_is_kept(void **state) {
	(void)state;
	char said[256];
	ask("OMP_WAIT_POLICY", "active", said);
	assert_non_null(strstr(said, "policy: active\n"));
	ask("GOMP_SPINCOUNT", "77", said);
	assert_non_null(strstr(said, "policy: -\n"));
}

static int say(char **argv) {
	char comm[32] = "";
	wait_policy_choose(argv);
	const char *policy = getenv("OMP_WAIT_POLICY");
	FILE *f = fopen("/proc/self/comm", "r");
	if (f == NULL || fgets(comm, sizeof comm, f) == NULL)
		return 1;
	printf("policy: %s\ncalled: %s\nargument: %s\nknown as: %s", policy ? policy : "-", argv[0], argv[2], comm);
	return fclose(f);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_chosen_where_nobody_has),
		cmocka_unit_test(test_a_choice_is_kept),
	};
	if (argc > 2 && strcmp(argv[1], "say") == 0)
		return say(argv);
	program = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
