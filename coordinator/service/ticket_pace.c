/* ticket_pace.c: see ticket_pace.h. */
#include "coordinator/service/ticket_pace.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"

static const struct gcra pace = {.each_us = RV_US_PER_S / TICKET_PACE_PER_S, .burst = TICKET_PACE_BURST};

bool ticket_pace_take(struct ticket_pace *p, uint32_t slot, int64_t now_us) {
	RV_ASSERT(slot < NET_MAX_HERE);
	return gcra_take(&pace, &p->paid_until_us[slot], now_us);
}
