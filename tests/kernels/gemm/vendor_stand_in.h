/* vendor_stand_in.h: whether the stand-in for cuBLASLt is found (kernels/cuda/vendor/vendor.h). */
#ifndef RV_TESTS_KERNELS_VENDOR_STAND_IN_H
#define RV_TESTS_KERNELS_VENDOR_STAND_IN_H

#include <stdbool.h>

/* At the start it is. */
void vendor_stand_in_missing(bool is_missing);

#endif
