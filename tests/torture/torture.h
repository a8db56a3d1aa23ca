/* torture.h: one scenario, again and again, each time with another fallible call that fails
 * (faults.h). */
#ifndef TESTS_TORTURE_TORTURE_H
#define TESTS_TORTURE_TORTURE_H

#include "base/err.h"
#include "tests/torture/faults.h"

/* With no fault, then with the first, the second, ... fallible call failing, once and from then on,
 * until all have. `limit`: at most so many trials a mode, evenly spread (RIVULET_TORTURE_ALL=1 in
 * the environment: all of them). After each trial, with no call failing, `check` looks at
 * what is left; it, and `run`, fail the test by CMocka. File descriptors that are open after a
 * trial and were not before fail it, too. Prints what was done. */
struct torture {
	const char *name;
	void (*begin)(void *ctx); /* before each trial, with nothing failing; may be NULL */
	void (*run)(void *ctx);
	void (*check)(void *ctx); /* may be NULL */
	void *ctx;
	long limit;
};
void torture(const struct torture *t);

/* Whether it went well; a fault must have a text, which is cleared for the next. */
bool torture_ok(enum rv_err e, struct rv_errtext *et);

#endif
