/* os_signals.h: signals as reads of a file descriptor. Under base/signals.h, which programs use.
 * One file a system: os_signals_linux.c (signalfd(2)); kqueue's EVFILT_SIGNAL elsewhere. */
#ifndef RV_BASE_OS_SIGNALS_H
#define RV_BASE_OS_SIGNALS_H

#include <signal.h>

/* Returns a file descriptor, non-blocking and close-on-exec, that is readable while a signal of
 * `set` waits; -1 with errno. The caller has blocked the signals in every thread, and closes it. */
int os_signals_open(const sigset_t *set);
/* Takes the next waiting signal and returns its number; 0: none waits; -1: it cannot be read. Never
 * blocks. */
int os_signals_take(int fd);

#endif
