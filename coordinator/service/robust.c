/* robust.c: see robust.h. */
#include "coordinator/service/robust.h"

#include "base/assert.h"
#include "base/order.h"

#include <math.h>

#define SIGMAS       5.0
#define MAD_TO_SIGMA 1.4826

double robust_median(const double *values, int n) {
	RV_ASSERT(n >= 0 && n <= ROBUST_MAX);
	return n == 0 ? 0 : rv_nth(values, n, (n - 1) / 2) / 2 + rv_nth(values, n, n / 2) / 2;
}

/* Returns how far from the median a value may be: five standard deviations, estimated by the median
 * of all distances (x 1.4826, which makes it that of a normal distribution), and at least
 * `least`. */
static double robust_width(const double *values, int n, double least) {
	double distance[ROBUST_MAX], median = robust_median(values, n);
	for (int i = 0; i < n; i++)
		distance[i] = fabs(values[i] - median);
	return fmax(least, SIGMAS * MAD_TO_SIGMA * robust_median(distance, n));
}

bool robust_is_far(const double *values, int n, int i, double least) {
	RV_ASSERT(i >= 0 && i < n);
	return n >= ROBUST_LEAST && fabs(values[i] - robust_median(values, n)) > robust_width(values, n, least);
}
