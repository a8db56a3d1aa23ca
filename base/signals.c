/* signals.c: SIGINT, SIGTERM and SIGHUP (a terminal that went away) through signalfd(2). */
#include "base/signals.h"

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void stop_signals(sigset_t *set) {
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGTERM);
	struct sigaction hangup;
	/* Leaves SIGHUP ignored under nohup: a blocked signal would reach the descriptor all the
	 * same. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		(void)sigaddset(set, SIGHUP);
}

enum rv_err rv_signals_open(int *out_fd, struct rv_errtext *et) {
	sigset_t set;
	stop_signals(&set);
	*out_fd = -1;
	int rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
	RV_ASSERT(rc == 0);
	(void)signal(SIGPIPE, SIG_IGN);
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "signalfd");
	*out_fd = fd;
	return RV_OK;
}

int rv_signals_take(int fd) {
	struct signalfd_siginfo info;
	if (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
		return (int)info.ssi_signo;
	return errno == EAGAIN || errno == EINTR ? 0 : SIGTERM;
}

void rv_signals_close(int fd) {
	if (fd >= 0)
		(void)close(fd);
	rv_signals_unblock();
}

void rv_signals_unblock(void) {
	sigset_t set;
	stop_signals(&set);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
