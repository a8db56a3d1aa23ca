/* member_pace.c: see member_pace.h. */
#include "coordinator/service/member_pace.h"

#include "base/assert.h"
#include "base/clock.h"

void member_pace_init(struct member_pace *p, int burst, int per_s) {
	RV_ASSERT(burst > 0 && per_s > 0);
	*p = (struct member_pace){.limit = {.each_us = RV_US_PER_S / per_s, .burst = burst}};
}

bool member_pace_take(struct member_pace *p, uint32_t slot, int64_t now_us) {
	RV_ASSERT(slot < NET_MAX_HERE);
	return gcra_take(&p->limit, &p->paid_until_us[slot], now_us);
}
