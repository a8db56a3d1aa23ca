/* clock.c: the real clocks. */
#include "base/clock.h"

#include "base/assert.h"

#include <time.h>

static int64_t now_us(clockid_t clock) {
	struct timespec ts;
	int rc = clock_gettime(clock, &ts);
	RV_ASSERT(rc == 0);
	return (int64_t)ts.tv_sec * RV_US_PER_S + ts.tv_nsec / 1000;
}

int64_t rv_clock_monotonic_us(void) {
	return now_us(CLOCK_MONOTONIC);
}

int64_t rv_clock_wall_us(void) {
	return now_us(CLOCK_REALTIME);
}

int64_t rv_clock_thread_us(void) {
	return now_us(CLOCK_THREAD_CPUTIME_ID);
}

int64_t rv_clock_process_us(void) {
	return now_us(CLOCK_PROCESS_CPUTIME_ID);
}
