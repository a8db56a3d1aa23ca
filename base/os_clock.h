/* os_clock.h: what only some systems count. Beside base/clock.h, whose clocks are everywhere. Any
 * thread; never blocks, never fails. */
#ifndef RV_BASE_OS_CLOCK_H
#define RV_BASE_OS_CLOCK_H

#include <stdint.h>

/* Returns for how long this machine has been suspended since it started, in microseconds:
 * rv_clock_monotonic_us() stands still meanwhile. At most too little. */
int64_t os_clock_suspended_us(void);

#endif
