/* report_pace.c: a leaky bucket for each member (GCRA, ITU-T I.371): every report uses its share of
 * a second, from a time that is never more than a burst ago. */
#include "coordinator/service/report_pace.h"

#include "base/assert.h"
#include "base/clock.h"

enum { EACH_US = RV_US_PER_S / REPORT_PACE_PER_S };

int64_t report_pace_take(struct report_pace *p, uint32_t member, int64_t now_us) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	int64_t *until_us = &p->taken_until_us[member], earliest_us = now_us - (int64_t)REPORT_PACE_BURST * EACH_US;
	if (*until_us < earliest_us)
		*until_us = earliest_us;
	*until_us += EACH_US;
	return *until_us > now_us ? *until_us : now_us;
}
