/* sleep_watch.c: see sleep_watch.h. */
#include "worker/session/sleep_watch.h"

#include "base/clock.h"

enum { LONG_US = 10 * RV_US_PER_S };

int64_t sleep_watch_take(struct sleep_watch *w, int64_t monotonic_us, int64_t suspended_us) {
	int64_t stood_us = monotonic_us - w->monotonic_us, slept_us = suspended_us - w->suspended_us;
	bool started = w->started;
	*w = (struct sleep_watch){.started = true, .monotonic_us = monotonic_us, .suspended_us = suspended_us};
	int64_t absent_us = (slept_us > 0 ? slept_us : 0) + stood_us;
	return started && absent_us >= LONG_US ? absent_us : 0;
}
