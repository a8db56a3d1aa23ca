/* person.h: when somebody last used this computer, by all that reports of it. */
#ifndef RV_WORKER_SENSORS_PERSON_H
#define RV_WORKER_SENSORS_PERSON_H

#include "worker/allow/readings.h"

#include <stdbool.h>

/* Seconds since input by each source; -1: it does not know. */
struct person_sources {
	int64_t gnome, x11, logind, terminals;
	bool wayland; /* the X server sees the input of its own windows only */
	bool display; /* somebody may sit at a screen */
};

/* Sets idle_s and idle_source. The most exact source counts: GNOME's, then the X server's own
 * (unless it is Xwayland), then logind's; a later key on a terminal counts before each. If there is
 * a display and none of the three knows, nobody is known to be away: unknown, or the latest use
 * that something saw. */
void person_combine(const struct person_sources *s, struct allow_readings *out);

#endif
