/* child.c: see child.h. */
#include "tests/kernels/emu/child.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's own side: an abort leaves no core file, and CMocka does not take it for the
 * test's. */
static void be_child(int stderr_to, int (*body)(const void *ctx), const void *ctx) {
	const struct rlimit none = {0, 0};
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(SIGABRT, SIG_DFL);
	(void)signal(SIGSEGV, SIG_DFL);
	(void)dup2(stderr_to, STDERR_FILENO);
	_exit(body(ctx));
}

struct child_outcome child_run(int (*body)(const void *ctx), const void *ctx) {
	struct child_outcome o = {0};
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	(void)fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		be_child(ends[1], body, ctx);
	(void)close(ends[1]);
	size_t used = 0;
	ssize_t n;
	char beyond[256];
	while ((n = used < sizeof o.text - 1 ? read(ends[0], o.text + used, sizeof o.text - 1 - used)
										 : read(ends[0], beyond, sizeof beyond)) > 0)
		used += used < sizeof o.text - 1 ? (size_t)n : 0;
	(void)close(ends[0]);
	assert_int_equal(waitpid(child, &o.status, 0), child);
	return o;
}

int child_count(const char *text, const char *what) {
	int n = 0;
	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}
