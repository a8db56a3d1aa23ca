/* sleep_watch.h: notices that this machine slept (suspend(8)), or that the program did not run for
 * long (SIGSTOP, a paused virtual machine). Its connections look open then, though the other ends
 * have given them up.
 *
 * CLOCK_MONOTONIC stands still while a machine sleeps, so the time asleep is what CLOCK_BOOTTIME
 * gained on it (clock_gettime(2)); while a program is stopped, both go on. No clock: the caller
 * hands both in. */
#ifndef RV_WORKER_SLEEP_WATCH_H
#define RV_WORKER_SLEEP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Zero before the first call. */
struct sleep_watch {
	bool started;
	int64_t monotonic_us, suspended_us; /* at the last call */
};

/* Returns how long the machine slept or the program stood since the last call, in microseconds; 0:
 * less than 10 s. Call it at least every second or so. `suspended_us`: CLOCK_BOOTTIME less
 * CLOCK_MONOTONIC. */
int64_t sleep_watch_take(struct sleep_watch *w, int64_t monotonic_us, int64_t suspended_us);

#endif
