/* stand_in_counts.h: what the stand-in (stand_in.h) that this process has loaded has counted. */
#ifndef RV_TESTS_KERNELS_DRIVER_STAND_IN_COUNTS_H
#define RV_TESTS_KERNELS_DRIVER_STAND_IN_COUNTS_H

#include "tests/common/check.h"
#include "tests/kernels/driver/stand_in.h"

#include <dlfcn.h>
#include <string.h>

/* Fails the test if a real driver is loaded, or none. */
static inline struct stand_in_counts stand_in_counts_now(void) {
	stand_in_count_fn *count;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(library);
	void *symbol = dlsym(library, "stand_in_count");
	assert_non_null(symbol);
	memcpy(&count, &symbol, sizeof count);
	return count();
}

#endif
