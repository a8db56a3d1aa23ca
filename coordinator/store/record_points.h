/* record_points.h: the failpoints around a record that becomes durable: "roster-record.durable", by
 * its type. */
#ifndef RV_COORDINATOR_RECORD_POINTS_H
#define RV_COORDINATOR_RECORD_POINTS_H

#include "base/failpoint.h"

#ifdef RV_FAILPOINTS
#include "coordinator/core/core.h"

#include <stdio.h>

static inline void record_point(uint8_t type, const char *step) {
	static const char *const names[] = {
		[CORE_MEMBER] = "member", [CORE_ROSTER] = "roster",     [CORE_COMMIT] = "commit", [CORE_SNAPSHOT] = "snapshot",
		[CORE_SEQ] = "seq",       [CORE_ROLLBACK] = "rollback", [CORE_AWAY] = "away",     [CORE_LEASES] = "leases"};
	char name[64];
	(void)snprintf(name, sizeof name, "%s-record.%s", names[type], step);
	rv_failpoint(name);
}
#define RECORD_POINT(type, step) record_point(type, step)
#else
#define RECORD_POINT(type, step) ((void)0)
#endif

#endif
