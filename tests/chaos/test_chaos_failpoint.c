/* test_chaos_failpoint.c: base/failpoint.h as a program with failpoints has it: each action in a
 * child process; and no name of a point is in a program that is installed. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "tests/common/check.h"

enum { EXIT_STATUS = 70, EXIT_USAGE = 64, NOT_REACHED = 3, FAULT = 4, MAX_PROGRAM_BYTES = 1 << 28 };

static void reach_points(void) {
	struct rv_errtext et = {0};
	for (int i = 0; i < 3; i++)
		RV_FAILPOINT("train.step");
	if (RV_FAILPOINT_FILE("/somewhere/log-12.rvl", "before-fsync", &et) == RV_E_IO ||
		RV_FAILPOINT_FILE("/somewhere/no-such-kind", "before-fsync", &et) != RV_OK)
		_exit(FAULT);
	if (RV_FAILPOINT_FAULT("encode.after", &et) == RV_E_FULL && strstr(et.text, "encode.after") != NULL)
		_exit(FAULT);
}

/* Status of a child that reaches the points under this plan; `signal` when it stops or dies of
 * one. */
static int outcome(const char *plan, int *signal) {
	int raw;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setenv("RIVULET_FAILPOINT", plan, 1);
		if (freopen("/dev/null", "w", stderr) == NULL || freopen("/dev/null", "w", stdout) == NULL)
			_exit(99);
		reach_points();
		_exit(NOT_REACHED);
	}
	assert_int_equal(waitpid(pid, &raw, WUNTRACED), pid);
	*signal = WIFSTOPPED(raw) ? WSTOPSIG(raw) : WIFSIGNALED(raw) ? WTERMSIG(raw) : 0;
	if (WIFSTOPPED(raw)) {
		assert_int_equal(kill(pid, SIGCONT), 0);
		assert_int_equal(waitpid(pid, &raw, 0), pid);
	}
	return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
}

static void each_action(void **state) {
	(void)state;
	static const struct {
		const char *plan;
		int status, signal;
	} cases[] = {
		{"train.step=kill", -1, SIGKILL},          {"train.step@3=stop", NOT_REACHED, SIGSTOP},
		{"train.step@3=exit", EXIT_STATUS, 0},     {"train.step@4=exit", NOT_REACHED, 0},
		{"train.step=delay:1", NOT_REACHED, 0},    {"train.step=EIO", EXIT_STATUS, 0},
		{"log.before-fsync=exit", EXIT_STATUS, 0}, {"encode.after=ENOSPC", FAULT, 0},
		{"encode.after@2=ENOSPC", NOT_REACHED, 0}, {"", NOT_REACHED, 0},
		{"train.stop=kill", EXIT_USAGE, 0},        {"train.step@0=kill", EXIT_USAGE, 0},
		{"train.step=explode", EXIT_USAGE, 0},     {"train.step=delay:", EXIT_USAGE, 0},
		{"train.step=delay:1x", EXIT_USAGE, 0},    {"train.step", EXIT_USAGE, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int signal, status = outcome(cases[i].plan, &signal);
		if (status != cases[i].status || signal != cases[i].signal)
			fail_msg("%s: status %d, signal %d", cases[i].plan, status, signal);
	}
}

static bool holds(const uint8_t *program, size_t n, const char *name) {
	return memmem(program, n, name, strlen(name) + 1) != NULL;
}

/* In an installed program there is none; and the same search finds them where they are. */
static void no_name_in_an_installed_program(void **state) {
	(void)state;
	static const struct {
		const char *path, *program;
		bool has;
	} programs[] = {{WORKER_PROGRAM, "worker", false},
					{COORDINATOR_PROGRAM, "coordinator", false},
					{WORKER_PROGRAM "-failpoint", "worker", true},
					{COORDINATOR_PROGRAM "-failpoint", "coordinator", true}};
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		struct rv_errtext et = {0};
		uint8_t *bytes;
		size_t n;
		if (rv_file_read(programs[i].path, MAX_PROGRAM_BYTES, &bytes, &n, &et) != RV_OK)
			fail_msg("%s", et.text);
		assert_int_equal(holds(bytes, n, "RIVULET_FAILPOINT"), programs[i].has);
		for (const struct rv_failpoint_info *p = rv_failpoints; p->name != NULL; p++)
			if (strcmp(p->program, programs[i].program) == 0 && holds(bytes, n, p->name) != programs[i].has)
				fail_msg("%s: %s", programs[i].path, p->name);
		free(bytes);
	}
}

static void names_are_distinct(void **state) {
	(void)state;
	int n = 0;
	for (const struct rv_failpoint_info *p = rv_failpoints; p->name != NULL; p++, n++)
		for (const struct rv_failpoint_info *q = p + 1; q->name != NULL; q++)
			assert_true(strcmp(p->name, q->name) != 0 || strcmp(p->program, q->program) != 0);
	assert_true(n >= 30);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_action),
		cmocka_unit_test(no_name_in_an_installed_program),
		cmocka_unit_test(names_are_distinct),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
