/* conformance.h: every operation of a backend against `ref`. */
#ifndef RV_TESTS_KERNELS_CONFORMANCE_H
#define RV_TESTS_KERNELS_CONFORMANCE_H

#include "tests/kernels/conformance/cases.h"

/* What was done so far, for the line at the end. */
struct conformance_count {
	long runs, arrays; /* operations times sizes times ways to run them; arrays compared */
};

/* Runs every case on `be`: all its sizes, or only the light ones. Fails the test on the first difference, after a line
 * that says what ran. */
void conformance_run(struct backend *be, bool all_sizes, struct conformance_count *count);

#endif
