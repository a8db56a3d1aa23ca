/* member_pace.h: limits the rate of a member's requests of one kind: faster ones are refused, and
 * the sender tries again. */
#ifndef RV_COORDINATOR_MEMBER_PACE_H
#define RV_COORDINATOR_MEMBER_PACE_H

#include "base/gcra.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* The pace of each member, by its slot. */
struct member_pace {
	struct gcra limit;
	int64_t paid_until_us[NET_MAX_HERE]; /* zero before its first request */
};

/* Allows `burst` requests at once, then per_s in a second. */
void member_pace_init(struct member_pace *p, int burst, int per_s);
/* Counts a request of the member in this slot; returns false, and counts nothing, if it comes too
 * soon. */
bool member_pace_take(struct member_pace *p, uint32_t slot, int64_t now_us);

#endif
