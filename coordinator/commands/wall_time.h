/* wall_time.h: a point in time, for tables. */
#ifndef RV_COORDINATOR_WALL_TIME_H
#define RV_COORDINATOR_WALL_TIME_H

#include <stdint.h>

enum { WALL_TIME_BYTES = 32 };

/* Writes microseconds since 1970 as "2026-11-23 20:10:04", UTC. */
void wall_time(int64_t wall_us, char out[WALL_TIME_BYTES]);

#endif
