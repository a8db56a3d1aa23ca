/* signals.h: SIGINT, SIGTERM and (unless ignored: nohup) SIGHUP as a readable file descriptor
 * (base/os_signals.h): no handler, no global flag.
 *
 * main opens it before it makes any thread, so that every thread inherits the blocked mask. Event
 * loops poll the descriptor (curl_multi_poll's extra fds, libevent, poll); a plain loop may call
 * rv_signals_take() between steps. A second signal is a second read: programs stop in order at the
 * first and at once at the second. SIGPIPE is ignored: writes report EPIPE. An interruptible child
 * calls rv_signals_unblock() between fork and exec. */
#ifndef RV_BASE_SIGNALS_H
#define RV_BASE_SIGNALS_H

#include "base/err.h"

/* Blocks the signals and ignores SIGPIPE. *out_fd is non-blocking and close-on-exec; the caller
 * closes it with rv_signals_close(). RV_E_IO and kin: no descriptor is left. */
enum rv_err rv_signals_open(int *out_fd, struct rv_errtext *et);
/* Returns the next pending signal's number, or 0 if there is none. Never blocks. Returns SIGTERM if
 * it cannot read: a program that cannot be stopped in order must end. */
int rv_signals_take(int fd);
/* Closes the descriptor and unblocks the signals: from here on they kill. */
void rv_signals_close(int fd);
/* Restores the default mask in a child. Async-signal-safe. */
void rv_signals_unblock(void);

#endif
