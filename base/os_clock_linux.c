/* os_clock_linux.c: CLOCK_BOOTTIME goes on while a machine sleeps, CLOCK_MONOTONIC does not
 * (clock_gettime(2)). */
#include "base/os_clock.h"

#include "base/assert.h"
#include "base/clock.h"

#include <time.h>

/* The monotonic clock is read second: what passes between the two readings must not look like time
 * asleep. */
int64_t os_clock_suspended_us(void) {
	struct timespec boot;
	int rc = clock_gettime(CLOCK_BOOTTIME, &boot);
	RV_ASSERT(rc == 0);
	int64_t boot_us = (int64_t)boot.tv_sec * RV_US_PER_S + boot.tv_nsec / 1000, awake_us = rv_clock_monotonic_us();
	return boot_us > awake_us ? boot_us - awake_us : 0;
}
