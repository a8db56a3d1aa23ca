/* report_pace.h: limits the rate of a member's reports. A worker reports at every change of its
 * state: a few times a round. Faster reports are not refused, as the run may wait for the last one:
 * their answers are delayed, and so is their sender, which sends one at a time on each of its
 * connections. */
#ifndef RV_COORDINATOR_REPORT_PACE_H
#define RV_COORDINATOR_REPORT_PACE_H

#include "net/limits.h"

#include <stdint.h>

enum { REPORT_PACE_PER_S = 200, REPORT_PACE_BURST = 400 };

/* The pace of each member; zero before its first report. */
struct report_pace {
	int64_t paid_until_us[NET_MAX_HERE];
};

/* Counts a report of the member in this slot and returns when it is taken: `now_us`, or later. */
int64_t report_pace_take(struct report_pace *p, uint32_t slot, int64_t now_us);

#endif
