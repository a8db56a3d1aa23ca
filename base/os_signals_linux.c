/* os_signals_linux.c: signalfd(2). */
#include "base/os_signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

int os_signals_open(const sigset_t *set) {
	return signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int os_signals_take(int fd) {
	struct signalfd_siginfo info;
	if (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
		return (int)info.ssi_signo;
	return errno == EAGAIN || errno == EINTR ? 0 : -1;
}
