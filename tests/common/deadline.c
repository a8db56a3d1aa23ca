/* deadline.c: see deadline.h. */
#include "tests/common/deadline.h"
#include "tests/common/check.h"

#include <math.h>
#include <time.h>

/* A look may start a program, and what is waited for needs the processor more. */
static const double least_s = 0.02, most_s = 0.25, of_waited = 0.05;

static double now_s(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct deadline deadline_in(double seconds, const char *what) {
	return (struct deadline){now_s() + seconds, seconds, what};
}

bool deadline_is_over(const struct deadline *d) {
	return now_s() > d->at_s;
}

void deadline_pause(const struct deadline *d) {
	if (deadline_is_over(d))
		fail_msg("%s: not within %.0f s", d->what, d->lasts_s);
	const double waited_s = d->lasts_s - (d->at_s - now_s());
	const double s = fmin(most_s, fmax(least_s, of_waited * waited_s));
	(void)nanosleep(&(const struct timespec){.tv_nsec = (long)(s * 1e9)}, NULL);
}
