/* version.c: see version.h. Weak: replaced by base/commit/commit.c where that is linked. */
#include "base/version.h"

__attribute__((weak)) const char *rv_version(void) {
	return RV_VERSION;
}
