/* conformance.h: every operation of a backend against `ref`. */
#ifndef RV_TESTS_KERNELS_CONFORMANCE_H
#define RV_TESTS_KERNELS_CONFORMANCE_H

#include "tests/kernels/conformance/cases.h"

/* What was done so far, for the line at the end. */
struct conformance_count {
	long runs, arrays; /* operations times sizes; arrays compared */
	uint64_t digest;   /* of everything that the backend computed in the last conformance_run */
};

/* Runs every case on `be`: all its sizes but those of GPT-2, or only the light ones. Fails the test
 * on the first difference, after a line that says what ran. */
void conformance_run(struct backend *be, bool all_sizes, struct conformance_count *count);

/* Returns case i of all, or NULL past the last. Borrowed. */
const struct conformance_case *conformance_case_at(int i);

/* What one case found at one size. */
struct conformance_row {
	const char *name;
	struct duo_findings checked; /* of the first calls, compared with the reference */
	struct duo_findings warm;    /* of further ones, timed alone */
};

/* Runs size i of a case once to compare, and again to time each call `repetitions` times (0: not).
 * Differences are counted, not fatal. */
void conformance_measure(struct duo *d, const struct conformance_case *c, int size, int repetitions,
						 struct conformance_row *out);

#endif
