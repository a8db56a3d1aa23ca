/* ticket_pace.h: limits the rate of a member's requests for pair tickets. Each ticket is a
 * signature, and a member asks for all that it needs at once: faster ones are refused, and the
 * sender tries again. */
#ifndef RV_COORDINATOR_TICKET_PACE_H
#define RV_COORDINATOR_TICKET_PACE_H

#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { TICKET_PACE_PER_S = 1, TICKET_PACE_BURST = 4 };

/* The pace of each member, by its slot; zero before its first request. */
struct ticket_pace {
	int64_t paid_until_us[NET_MAX_HERE];
};

/* Counts a request of the member in this slot; returns false, and counts nothing, if it comes too
 * soon. */
bool ticket_pace_take(struct ticket_pace *p, uint32_t slot, int64_t now_us);

#endif
