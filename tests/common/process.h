/* process.h: programs that a test runs. They die with the test (PR_SET_PDEATHSIG) and are only ever
 * signalled by their id. A program is named as in build/release/bin, or by a path. Waiting has a
 * deadline that fails the test, after the end of the program's log was shown. */
#ifndef RV_TESTS_COMMON_PROCESS_H
#define RV_TESTS_COMMON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* PROCESS_WAIT_S: only a hang takes so long. */
enum { PROCESS_PATH = 256, PROCESS_ENV_MAX = 3, PROCESS_WAIT_S = 300 };

struct process {
	pid_t pid; /* 0: not running */
	char log[PROCESS_PATH];
};

/* How a program is started, beside its arguments; zeros: as the test itself runs. */
struct process_setup {
	const char *env[PROCESS_ENV_MAX]; /* "NAME=value" each; NULL: no more */
	const char *name_space;           /* a network namespace, by its path; NULL or "": the test's own */
	long file_limit;                  /* bytes: it can write no longer file; 0: no limit */
};

/* Starts argv[0] (`argv` ends with NULL), its output going to `out_fd`; `setup` may be NULL.
 * Returns the process id. */
pid_t process_spawn(const char *const *argv, int out_fd, const struct process_setup *setup);
/* Starts it with its output appended to p->log. */
void process_start(struct process *p, const char *const *argv, const struct process_setup *setup);
void process_signal(struct process *p, int signal);
void process_freeze(struct process *p); /* SIGSTOP; returns when it has stopped */
/* Returns true if it has ended and nobody has waited for it yet. */
bool process_has_ended(const struct process *p);
/* The same, and waits for it: `*status` gets its exit status, or 128 + signal. */
bool process_try_wait(struct process *p, int *status);
/* Waits for its end; returns the exit status, or 128 + signal. */
int process_wait(struct process *p);
void process_assert_exit(struct process *p, int status);
void process_kill(struct process *p); /* -9, if it runs, and waits */
/* Prints the end of a log to stderr. */
void process_show_log(const char *log);
/* Waits until the file is there and not empty. Returns false, with p->pid == 0, if the process
 * ended first, with `*status`. */
bool process_await_file(struct process *p, const char *path, int *status);

/* Runs a program to its end; `out` gets its stdout and stderr, the first cap - 1 bytes of them.
 * Returns the exit status, or 128 + signal. */
int process_run(char *out, size_t cap, const char *const *argv);
/* The same for a line for sh, made as by printf. */
int process_shell(char *out, size_t cap, const char *line, ...) __attribute__((format(printf, 3, 4)));

#endif
