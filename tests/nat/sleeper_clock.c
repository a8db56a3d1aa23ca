/* sleeper_clock.c: the clocks of a computer that can be put to sleep, for rivulet-worker-sleeper.
 *
 * While a computer sleeps, CLOCK_MONOTONIC stands still, CLOCK_REALTIME and CLOCK_BOOTTIME go on
 * (clock_gettime(2)), and no program runs. Here the program is stopped by a signal, so its own
 * clocks go on; when it is woken, the file RIVULET_SLEPT (two integers of 64 bits, nanoseconds)
 * says by how much the monotonic clock is to be behind the machine's, and the others ahead of it. A
 * program's definition comes before the C library's, for its shared libraries too.
 *
 * Threads of the program read the file's page; only the test writes, while they are stopped. */
#include "base/assert.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

struct slept {
	int64_t missed_ns, gained_ns;
};

static struct slept *map_file(void) {
	const char *path = getenv("RIVULET_SLEPT");
	RV_ASSERT(path != NULL);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	RV_ASSERT(fd >= 0);
	void *p = mmap(NULL, sizeof(struct slept), PROT_READ, MAP_SHARED, fd, 0);
	RV_ASSERT(p != MAP_FAILED);
	close(fd);
	return p;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct slept *the_file;

static void map_once(void) {
	the_file = map_file();
}

static const struct slept *slept(void) {
	(void)pthread_once(&once, map_once);
	return the_file;
}

static bool stands_still(clockid_t clock) {
	return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE;
}

static bool goes_on(clockid_t clock) {
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_BOOTTIME;
}

static void add_ns(struct timespec *t, int64_t ns) {
	int64_t sum = (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec + ns;
	t->tv_sec = (time_t)(sum / NS_PER_S);
	t->tv_nsec = (long)(sum % NS_PER_S);
}

int clock_gettime(clockid_t clock, struct timespec *t) {
	int rc = (int)syscall(SYS_clock_gettime, clock, t);
	if (rc == 0 && stands_still(clock))
		add_ns(t, -slept()->missed_ns);
	if (rc == 0 && goes_on(clock))
		add_ns(t, slept()->gained_ns);
	return rc;
}

/* Waits until a time of the clock above; each condition variable of the worker that has a timeout
 * has CLOCK_MONOTONIC. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
	struct timespec t = *until;
	add_ns(&t, slept()->missed_ns);
	return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t);
}
