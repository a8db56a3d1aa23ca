/* assert.c: the end of a program that found a bug in itself. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void rv_assert_failed(const char *file, int line, const char *func, const char *expr) {
	(void)fprintf(stderr, "rivulet: bug: %s:%d: %s: assertion failed: %s\n", file, line, func, expr);
	(void)fflush(stderr);
	abort();
}
