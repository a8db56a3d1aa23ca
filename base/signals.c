/* signals.c: SIGINT, SIGTERM and SIGHUP (a terminal that went away), blocked and read. */
#include "base/signals.h"

#include "base/assert.h"
#include "base/os_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
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
	int fd = os_signals_open(&set);
	if (fd < 0)
		return rv_fail_errno(et, errno, "no descriptor to read signals from");
	*out_fd = fd;
	return RV_OK;
}

int rv_signals_take(int fd) {
	int signal_number = os_signals_take(fd);
	return signal_number >= 0 ? signal_number : SIGTERM;
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
