/* version.c: see version.h. Weak: base/commit/commit.c, where it is linked, takes its place. */
#include "base/version.h"

__attribute__((weak)) const char *rv_version(void) {
	return RV_VERSION;
}
