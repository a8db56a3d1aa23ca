/* clock.h: the real clocks. The protocol cores never call these; their caller passes the time. Any
 * thread; never blocks, never fails. */
#ifndef RV_BASE_CLOCK_H
#define RV_BASE_CLOCK_H

#include <stdint.h>

enum { RV_US_PER_MS = 1000, RV_US_PER_S = 1000000 };

/* Returns monotonic microseconds since an arbitrary start; never jumps. For deadlines and
 * durations. */
int64_t rv_clock_monotonic_us(void);
/* Returns wall clock microseconds since 1970 UTC; may jump. For people only (logs, reports). */
int64_t rv_clock_wall_us(void);
/* Returns the processor time that the calling thread has used, in microseconds. */
int64_t rv_clock_thread_us(void);
/* Returns the same of all threads of the process, those that have ended included. */
int64_t rv_clock_process_us(void);

#endif
