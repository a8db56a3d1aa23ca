/* robust.h: robust statistics of a few members' figures, some of which may be wrong or lies. No
 * state, no I/O. Values are finite; n <= ROBUST_MAX. */
#ifndef RV_COORDINATOR_ROBUST_H
#define RV_COORDINATOR_ROBUST_H

#include <stdbool.h>

enum {
	ROBUST_MAX = 1024, /* a roster */
	ROBUST_LEAST = 3   /* values: with two, neither is the odd one */
};

/* Returns the median; with an even number the mean of the middle two; 0 for n = 0. */
double robust_median(const double *values, int n);
/* Returns true if values[i] is further from the median than that. False with fewer than
 * ROBUST_LEAST values. */
bool robust_is_far(const double *values, int n, int i, double least);

#endif
