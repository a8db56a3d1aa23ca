/* conformance.h: every operation of a backend against `ref`. */
#ifndef RV_TESTS_KERNELS_CONFORMANCE_H
#define RV_TESTS_KERNELS_CONFORMANCE_H

#include "tests/kernels/conformance/cases.h"

/* What was done so far, for the line at the end. */
struct conformance_count {
	long runs, arrays; /* operations times sizes; arrays compared */
	uint64_t digest;   /* of everything that the backend computed in the last conformance_run */
};

/* Runs every case on `be`: all its sizes, or only the light ones. Fails the test on the first difference, after a line
 * that says what ran. */
void conformance_run(struct backend *be, bool all_sizes, struct conformance_count *count);

#endif
