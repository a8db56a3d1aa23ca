/* python_run.c: see python_run.h. */
#include "kernels/cuda/vendor/python_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT_BYTES_MAX = 32 << 10 };

extern char **environ;

static int64_t now_ms(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Starts the interpreter with its standard output in `pipe_end`. Returns 0 if it cannot be
 * started. */
static pid_t start(const char *interpreter, int pipe_end) {
	char *const argv[] = {(char *)(uintptr_t)interpreter, (char *)(uintptr_t) "-c",
						  (char *)(uintptr_t) "import sys; print('\\n'.join(sys.path))", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	pid_t pid = 0;
	if (posix_spawn_file_actions_init(&files) != 0)
		return 0;
	if (posix_spawnattr_init(&attributes) == 0) {
		bool ready = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
					 posix_spawn_file_actions_adddup2(&files, pipe_end, STDOUT_FILENO) == 0 &&
					 posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
					 posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) == 0;
		if (!ready || posix_spawn(&pid, interpreter, &files, &attributes, argv, environ) != 0)
			pid = 0;
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return pid;
}

/* Reads until the other end is closed, `text` is full (a read of 0 bytes), or the time is over.
 * Returns the bytes read; `text` is terminated. */
static size_t read_until(int fd, char text[OUTPUT_BYTES_MAX], int64_t deadline_ms) {
	size_t n = 0;
	for (;;) {
		int64_t left_ms = deadline_ms - now_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
			break;
		ssize_t got = read(fd, text + n, OUTPUT_BYTES_MAX - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	text[n] = 0;
	return n;
}

static bool ends_in_packages(const char *line) {
	static const char end[] = "-packages";
	size_t n = strlen(line);
	return n >= sizeof end - 1 && strcmp(line + n - (sizeof end - 1), end) == 0;
}

void python_ask(struct place_list *out, const char *interpreter, int timeout_ms) {
	char text[OUTPUT_BYTES_MAX];
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid_t pid = start(interpreter, ends[1]);
	(void)close(ends[1]);
	text[0] = 0;
	if (pid > 0) {
		(void)read_until(ends[0], text, now_ms() + timeout_ms);
		(void)kill(-pid, SIGKILL); /* it has printed all, or takes too long */
		(void)waitpid(pid, NULL, 0);
	}
	(void)close(ends[0]);
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (line[0] == '/' && ends_in_packages(line))
			place_list_add(out, "%s", line);
}
