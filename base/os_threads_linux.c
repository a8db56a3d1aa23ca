/* os_threads_linux.c: conditions that count the monotonic clock, and glibc's extensions. */
#include "base/os_threads.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

static struct timespec timespec_of(int64_t us) {
	return (struct timespec){.tv_sec = (time_t)(us / RV_US_PER_S), .tv_nsec = (long)(us % RV_US_PER_S) * 1000};
}

void os_cond_init(pthread_cond_t *c) {
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(c, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

bool os_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *held, int64_t deadline_us) {
	const struct timespec until = timespec_of(deadline_us);
	return pthread_cond_timedwait(c, held, &until) != ETIMEDOUT;
}

/* glibc 2.31 has pthread_clockjoin_np; before, only the wall clock counts. */
bool os_thread_join_until(pthread_t thread, int64_t deadline_us) {
	int64_t left_us = deadline_us - rv_clock_monotonic_us();
	const struct timespec until = timespec_of(rv_clock_wall_us() + (left_us > 0 ? left_us : 0));
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

void os_thread_name(const char *name) {
	(void)pthread_setname_np(pthread_self(), name);
}
