/* axis.h: maps values to pixels, and places ticks. Internal to chart.c. */
#ifndef RV_BASE_CHART_AXIS_H
#define RV_BASE_CHART_AXIS_H

#include <stdbool.h>

enum { AXIS_MAX_TICKS = 24 };

struct axis {
	double low, high;  /* values at the ends */
	double begin, end; /* pixels of the ends */
	bool log;
	double ticks[AXIS_MAX_TICKS];
	int n_ticks;
};

/* Returns an axis whose ends are round numbers at or beyond the data's, with about `wanted` ticks.
 * Any finite range is valid, also an empty one; for a log axis both must be positive. */
struct axis axis_of(double data_low, double data_high, bool log, int wanted, double begin, double end);
/* Returns true if the text of a tick, centred at pixel `x` of a horizontal axis, stays clear of the
 * one before it, which ends at pixel *end; then *end is where it ends itself. Begin with -INFINITY.
 * */
bool axis_has_room(double x, const char *text, double *end);
/* Returns the pixel of value `v`. */
double axis_at(const struct axis *a, double v);

#endif
