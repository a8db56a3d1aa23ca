/* stand_in_internal.h: what the files of the stand-in share. */
#ifndef RV_TESTS_KERNELS_DRIVER_STAND_IN_INTERNAL_H
#define RV_TESTS_KERNELS_DRIVER_STAND_IN_INTERNAL_H

#include "kernels/cuda/vendor/driver_api.h"
#include "tests/kernels/driver/stand_in.h"

#include <stdbool.h>

#pragma GCC visibility push(default)
#define VENDOR_FUNCTION(result, name, parameters) result name parameters;
#include "kernels/cuda/vendor/driver.def"
struct stand_in_counts stand_in_count(void);
#pragma GCC visibility pop

extern struct stand_in_counts stand_in;
int stand_in_capability(void);
bool stand_in_captures(CUstream s);

#endif
