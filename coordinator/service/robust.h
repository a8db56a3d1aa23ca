/* robust.h: figures of a few members, of which some may be wrong or lies: the others decide what is usual. No state,
 * no I/O. Values are finite; n <= ROBUST_MAX. */
#ifndef RV_COORDINATOR_ROBUST_H
#define RV_COORDINATOR_ROBUST_H

#include <stdbool.h>

enum {
	ROBUST_MAX = 64,
	ROBUST_LEAST = 3 /* values: of two nobody knows which is the odd one */
};

/* Returns the value in the middle; with an even number the mean of the two. 0 of none. */
double robust_median(const double *values, int n);
/* Returns how far from the median a value may be: five standard deviations, as the median of all distances tells them
 * (x 1.4826, which makes it that of a normal distribution), and `least` at least. */
double robust_width(const double *values, int n, double least);
/* Returns whether values[i] is further from the median than that. False with fewer than ROBUST_LEAST values. */
bool robust_is_far(const double *values, int n, int i, double least);

#endif
