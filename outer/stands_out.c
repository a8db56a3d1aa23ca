/* stands_out.c: see stands_out.h. */
#include "outer/stands_out.h"

#include "base/assert.h"
#include "base/order.h"

#include <limits.h>

/* Returns the squared ratio of chunk i. */
static double ratio2(const double *own, const double *mean, uint32_t i, double floor) {
	return mean[i] / (own[i] > floor ? own[i] : floor);
}

int64_t stands_out(const double *own, const double *mean, uint32_t n, double *work) {
	const double times2 = STANDS_OUT_TIMES * STANDS_OUT_TIMES, least2 = STANDS_OUT_LEAST * STANDS_OUT_LEAST;
	uint32_t known = 0;
	int64_t best = -1;
	RV_ASSERT(n > 0 && n <= INT_MAX);
	const double floor = rv_nth(own, (int)n, ((int)n - 1) / 2);
	if (floor <= 0)
		return -1; /* most of it is zeros: nothing is known */
	for (uint32_t i = 0; i < n; i++) {
		if (mean[i] < 0)
			continue;
		work[known++] = ratio2(own, mean, i, floor);
		best = best < 0 || work[known - 1] > ratio2(own, mean, (uint32_t)best, floor) ? (int64_t)i : best;
	}
	if (best < 0)
		return -1;
	const double largest = ratio2(own, mean, (uint32_t)best, floor);
	const double usual = rv_nth(work, (int)known, ((int)known - 1) / 2);
	return largest > least2 && largest > times2 * usual ? best : -1;
}
