/* wall_time.c: see wall_time.h. */
#include "coordinator/commands/wall_time.h"

#include "base/clock.h"

#include <time.h>

void wall_time(int64_t wall_us, char out[WALL_TIME_BYTES]) {
	time_t at = (time_t)(wall_us / RV_US_PER_S);
	struct tm tm;
	out[0] = '\0';
	if (gmtime_r(&at, &tm) != NULL)
		(void)strftime(out, WALL_TIME_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
}
