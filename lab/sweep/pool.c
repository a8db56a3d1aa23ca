/* pool.c: fork, exec, waitpid. */
#include "lab/sweep/pool.h"

#include "base/assert.h"
#include "base/os_program.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_STARTED = 127 };

bool sweep_pool_has_room(const struct sweep_pool *p, size_t memory_bytes) {
	if (p->n_running == 0)
		return true;
	return p->n_running < p->jobs && memory_bytes <= p->memory_bytes && p->used_bytes <= p->memory_bytes - memory_bytes;
}

/* Becomes the child, between fork and exec: only async-signal-safe calls. */
static void become(char *const *words, int log, pid_t parent) {
	(void)setpgid(0, 0);
	os_program_end_with_parent(SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_NOT_STARTED);
	rv_signals_unblock();
	if (dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
		execv(words[0], words);
	_exit(EXIT_NOT_STARTED);
}

enum rv_err sweep_pool_start(struct sweep_pool *p, int cell, size_t memory_bytes, char *const *words, const char *log,
							 struct rv_errtext *et) {
	int at = 0;
	while (at < SWEEP_POOL_MAX && p->children[at].pid != 0)
		at++;
	RV_ASSERT(at < SWEEP_POOL_MAX);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s", log);
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		become(words, fd, parent);
	int why = errno;
	(void)close(fd);
	if (pid < 0)
		return rv_fail_errno(et, why, "cannot start %s", words[0]);
	p->children[at].pid = pid;
	p->children[at].cell = cell;
	p->children[at].memory_bytes = memory_bytes;
	p->n_running++;
	p->used_bytes += memory_bytes;
	return RV_OK;
}

bool sweep_pool_reap(struct sweep_pool *p, int *cell, int *status) {
	for (int i = 0; i < SWEEP_POOL_MAX; i++) {
		int how;
		if (p->children[i].pid == 0 || waitpid(p->children[i].pid, &how, WNOHANG) != p->children[i].pid)
			continue;
		*cell = p->children[i].cell;
		*status = WIFEXITED(how) ? WEXITSTATUS(how) : SWEEP_POOL_SIGNALLED + WTERMSIG(how);
		p->n_running--;
		p->used_bytes -= p->children[i].memory_bytes;
		p->children[i].pid = 0;
		return true;
	}
	return false;
}

void sweep_pool_signal(const struct sweep_pool *p, int signal) {
	for (int i = 0; i < SWEEP_POOL_MAX; i++)
		if (p->children[i].pid != 0)
			(void)kill(p->children[i].pid, signal);
}
