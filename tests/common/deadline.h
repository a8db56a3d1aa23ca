/* deadline.h: waiting for a condition, by polling:
 *     for (struct deadline d = deadline_in(60, "the port"); !is_open(port);)
 *         deadline_pause(&d); */
#ifndef RV_TESTS_COMMON_DEADLINE_H
#define RV_TESTS_COMMON_DEADLINE_H

#include <stdbool.h>

struct deadline {
	double at_s, lasts_s;
	const char *what; /* is waited for */
};

struct deadline deadline_in(double seconds, const char *what);
bool deadline_is_over(const struct deadline *d);
/* Sleeps for 20 ms, or for a twentieth of what was waited, up to 250 ms, when that is longer.
 * Fails the test when the time is over. */
void deadline_pause(const struct deadline *d);

#endif
