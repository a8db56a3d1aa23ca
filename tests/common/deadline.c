/* deadline.c: see deadline.h. */
#include "tests/common/deadline.h"
#include "tests/common/check.h"

#include <time.h>

enum { POLL_MS = 20 };

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
	(void)nanosleep(&(const struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
}
