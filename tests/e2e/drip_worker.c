/* drip_worker.c: a worker whose links to its peers give one byte a second from its third all-reduce
 * on, while it speaks to the coordinator as ever: nothing but the lack of progress gives it away.
 * Linked in place of what it wraps. */
#include "base/clock.h"
#include "net/reduce/reduce.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { FROM_ROUND = 2, PAUSE_US = 5000 /* a socket that seems to have room is asked again at once */ };

static struct {
	atomic_bool on;
	int64_t next_us;
} drip;

bool __real_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
bool __wrap_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
bool __wrap_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	bool any = __real_reduce_send(r, now_us, to, out);
	if (any && out->type == REDUCE_SCATTER && out->round >= FROM_ROUND && !atomic_exchange(&drip.on, true)) {
		char line[128];
		int n = snprintf(line, sizeof line, "{\"t\": %.3f, \"event\": \"drips\", \"round\": %" PRIu64 "}\n",
						 (double)rv_clock_wall_us() / RV_US_PER_S, out->round);
		ssize_t written = write(STDOUT_FILENO, line, (size_t)n);
		(void)written;
	}
	return any;
}

ssize_t __real_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags) {
	if (!atomic_load(&drip.on))
		return __real_send(fd, p, n, flags);
	int64_t now_us = rv_clock_monotonic_us();
	if (now_us < drip.next_us) {
		(void)usleep(PAUSE_US);
		errno = EAGAIN;
		return -1;
	}
	drip.next_us = now_us + RV_US_PER_S;
	return __real_send(fd, p, n > 0 ? 1 : 0, flags);
}
