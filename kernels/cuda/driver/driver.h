/* driver.h: the driver's library and the device that a thread uses: shared by runtime.c and
 * device_code.c. */
#ifndef RV_CUDA_DRIVER_DRIVER_H
#define RV_CUDA_DRIVER_DRIVER_H

#include "kernels/cuda/driver/kernel.h"
#include "kernels/cuda/vendor/driver_api.h"

/* Returns the driver's functions, loaded and initialized once per process; NULL: there is no usable
 * driver, with the reason in *why (may be NULL). Any thread. */
const struct driver_api *driver_get(cudaError_t *why);
/* Counts a user of a device. Its context is made when it is needed. Any thread. */
void driver_hold(int device);
/* Ends a use. With the last one the device's modules are unloaded and its context is released:
 * the driver keeps no memory of the device for this process, unless a library of NVIDIA's holds the
 * context, too. Nothing of the device may be in use any longer; a later call makes a context
 * again. Any thread. */
void driver_let_go(int device);
/* Returns the number of the device's context: another one after each release, from 1 on. */
unsigned driver_generation(int device);
/* Returns the calling thread's device, and makes its context current on the first call. */
cudaError_t driver_device(int *device);
/* Notes `e` as the calling thread's last error, unless it is a success or cudaErrorNotReady, and
 * returns it. */
cudaError_t driver_note(cudaError_t e);

#endif
