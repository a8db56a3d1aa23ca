/* heat.h: a limit on a temperature, with hysteresis: work stops at the limit and goes on once the
 * part is ALLOW_COOLER_CELSIUS below it. Without that gap it would stop and start each second. */
#ifndef RV_WORKER_ALLOW_HEAT_H
#define RV_WORKER_ALLOW_HEAT_H

#include <stdbool.h>

enum { ALLOW_COOLER_CELSIUS = 5 };

/* Returns whether the part is too hot to work, where `was_hot` is the answer before. `celsius` NaN
 * (unknown) and `limit_celsius` 0 (no limit): false. */
static inline bool allow_is_hot(bool was_hot, double celsius, double limit_celsius) {
	const double gap = was_hot ? ALLOW_COOLER_CELSIUS : 0;
	return limit_celsius > 0 && celsius >= limit_celsius - gap; /* false for NaN */
}

#endif
