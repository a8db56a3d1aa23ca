/* report_pace.c: see report_pace.h. */
#include "coordinator/service/report_pace.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"

static const struct gcra pace = {.each_us = RV_US_PER_S / REPORT_PACE_PER_S, .burst = REPORT_PACE_BURST};

int64_t report_pace_take(struct report_pace *p, uint32_t slot, int64_t now_us) {
	RV_ASSERT(slot < NET_MAX_HERE);
	int64_t at_us = gcra_ready_us(&pace, p->paid_until_us[slot]);
	gcra_count(&pace, &p->paid_until_us[slot], now_us);
	return at_us > now_us ? at_us : now_us;
}
