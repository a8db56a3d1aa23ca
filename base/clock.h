/* clock.h: the real clocks. The protocol cores never call these: they are handed the time. */
#ifndef RV_BASE_CLOCK_H
#define RV_BASE_CLOCK_H

#include <stdint.h>

enum { RV_US_PER_MS = 1000, RV_US_PER_S = 1000000 };

/* Monotonic microseconds since an arbitrary start; never jumps. For deadlines and durations. */
int64_t rv_clock_monotonic_us(void);
/* Wall clock, microseconds since 1970 UTC; may jump. For people only (logs, reports). */
int64_t rv_clock_wall_us(void);
/* Processor time that the calling thread has taken, microseconds. */
int64_t rv_clock_thread_us(void);

#endif
