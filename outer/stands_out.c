/* stands_out.c: see stands_out.h. */
#include "outer/stands_out.h"

#include "base/assert.h"
#include "base/order.h"

#include <limits.h>
#include <math.h>

/* How far a chunk is from the others, by one of two measures: the larger, the further. */
typedef double measure_fn(const struct stands_out_chunk *c, double floor);

/* Returns the squared ratio. */
static double ratio2(const struct stands_out_chunk *c, double floor) {
	return c->mean / (c->own > floor ? c->own : floor);
}

/* Returns the cosine, with its sign turned; 0 if the own contribution is below `floor`. */
static double opposition(const struct stands_out_chunk *c, double floor) {
	const double norms = sqrt(c->own) * sqrt(c->mean);
	return norms > 0 && c->own >= floor ? -c->both / norms : 0;
}

static double middle(const double *x, uint32_t n) {
	return rv_nth(x, (int)n, ((int)n - 1) / 2);
}

/* Returns the known chunk that is furthest, and sets *usual to the median of all of those; -1: none
 * is known. */
static int64_t furthest(measure_fn *of, const struct stands_out_chunk *chunks, uint32_t n, double floor, double *work,
						double *usual) {
	uint32_t known = 0;
	int64_t best = -1;
	for (uint32_t i = 0; i < n; i++) {
		if (!chunks[i].known)
			continue;
		work[known++] = of(&chunks[i], floor);
		best = best < 0 || work[known - 1] > of(&chunks[best], floor) ? (int64_t)i : best;
	}
	*usual = known > 0 ? middle(work, known) : 0;
	return best;
}

int64_t stands_out(const struct stands_out_chunk *chunks, uint32_t n, double *work) {
	const double times2 = STANDS_OUT_TIMES * STANDS_OUT_TIMES, least2 = STANDS_OUT_LEAST * STANDS_OUT_LEAST;
	double usual;
	RV_ASSERT(n > 0 && n <= INT_MAX);
	for (uint32_t i = 0; i < n; i++)
		work[i] = chunks[i].own;
	const double floor = middle(work, n);
	if (floor <= 0)
		return -1; /* most of it is zeros: nothing is known */
	const int64_t largest = furthest(ratio2, chunks, n, floor, work, &usual);
	if (largest < 0)
		return -1;
	const double ratio = ratio2(&chunks[largest], floor);
	if (ratio > least2 && ratio > times2 * usual)
		return largest;
	const int64_t opposed = furthest(opposition, chunks, n, floor * STANDS_OUT_SMALL, work, &usual);
	return opposition(&chunks[opposed], floor * STANDS_OUT_SMALL) > STANDS_OUT_OPPOSED && usual < 0 ? opposed : -1;
}
