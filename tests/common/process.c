/* process.c: see process.h. */
#include "tests/common/process.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOWN_BYTES = 3000, SHELL_BYTES = 4096, EXIT_SETUP = 125 };

/* A write past the limit fails with EFBIG, much as on a full disk. */
static bool limit_files(long bytes) {
	struct rlimit r;
	(void)signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &r) != 0)
		return false;
	r.rlim_cur = (rlim_t)bytes; /* the test may lift it again */
	return setrlimit(RLIMIT_FSIZE, &r) == 0;
}

static bool enter(const char *name_space) {
	const int fd = open(name_space, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
}

static bool set_up(const struct process_setup *in) {
	for (int i = 0; i < PROCESS_ENV_MAX && in->env[i]; i++)
		if (putenv((char *)(uintptr_t)in->env[i]) != 0)
			return false;
	return (!in->name_space || !in->name_space[0] || enter(in->name_space)) &&
		   (in->file_limit == 0 || limit_files(in->file_limit));
}

static _Noreturn void be(const char *const *argv, int out_fd, const struct process_setup *setup) {
	char program[PROCESS_PATH];
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((setup && !set_up(setup)) || dup2(out_fd, STDOUT_FILENO) < 0 || dup2(out_fd, STDERR_FILENO) < 0)
		_exit(EXIT_SETUP);
	(void)snprintf(program, sizeof program, "%s%s", strchr(argv[0], '/') ? "" : RV_TEST_BIN_DIR "/", argv[0]);
	(void)execv(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

pid_t process_spawn(const char *const *argv, int out_fd, const struct process_setup *setup) {
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be(argv, out_fd, setup);
	return pid;
}

void process_start(struct process *p, const char *const *argv, const struct process_setup *setup) {
	const int fd = open(p->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	p->pid = process_spawn(argv, fd, setup);
	(void)close(fd);
}

void process_signal(struct process *p, int signal) {
	assert_true(p->pid > 0);
	assert_int_equal(kill(p->pid, signal), 0);
}

void process_freeze(struct process *p) {
	siginfo_t info;
	process_signal(p, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)p->pid, &info, WSTOPPED), 0);
}

bool process_has_ended(const struct process *p) {
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid;
}

static int status_of(int raw) {
	return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

bool process_try_wait(struct process *p, int *status) {
	int raw;
	if (waitpid(p->pid, &raw, WNOHANG) != p->pid)
		return false;
	p->pid = 0;
	*status = status_of(raw);
	return true;
}

/* Not by print_error(), which cuts off after 1 KiB. */
void process_show_log(const char *log) {
	char *text = scratch_read(log, NULL);
	const size_t n = text ? strlen(text) : 0;
	(void)fprintf(stderr, "--- the end of %s:\n%s\n", log,
				  text ? text + (n > SHOWN_BYTES ? n - SHOWN_BYTES : 0) : "(none)");
	free(text);
}

int process_wait(struct process *p) {
	int status = -1;
	struct deadline d = deadline_in(PROCESS_WAIT_S, p->log);
	while (p->pid > 0 && !process_try_wait(p, &status)) {
		if (deadline_is_over(&d))
			process_show_log(p->log);
		deadline_pause(&d);
	}
	return status;
}

void process_assert_exit(struct process *p, int status) {
	const int ended = process_wait(p);
	if (ended != status)
		process_show_log(p->log);
	assert_int_equal(ended, status);
}

void process_kill(struct process *p) {
	if (p->pid <= 0)
		return;
	process_signal(p, SIGKILL);
	(void)process_wait(p);
}

bool process_await_file(struct process *p, const char *path, int *status) {
	struct stat st;
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, path); stat(path, &st) != 0 || st.st_size == 0;) {
		if (p->pid == 0 || process_try_wait(p, status))
			return false;
		if (deadline_is_over(&d))
			process_show_log(p->log);
		deadline_pause(&d);
	}
	return true;
}

int process_run(char *out, size_t cap, const char *const *argv) {
	int ends[2], raw;
	size_t n = 0;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const pid_t pid = process_spawn(argv, ends[1], NULL);
	(void)close(ends[1]);
	char rest[1024];
	for (ssize_t got = 1; got > 0;) { /* to its end: a full pipe would stop it */
		got = n + 1 < cap ? read(ends[0], out + n, cap - 1 - n) : read(ends[0], rest, sizeof rest);
		n += got > 0 && n + 1 < cap ? (size_t)got : 0;
	}
	out[n] = '\0';
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, &raw, 0), pid);
	return status_of(raw);
}

int process_shell(char *out, size_t cap, const char *line, ...) {
	char text[SHELL_BYTES];
	va_list args;
	va_start(args, line);
	assert_in_range(vsnprintf(text, sizeof text, line, args), 1, sizeof text - 1);
	va_end(args);
	return process_run(out, cap, (const char *const[]){"/bin/sh", "-c", text, NULL});
}
