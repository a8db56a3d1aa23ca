/* load_code.h: what the CUDA runtime does by itself, or cannot do: loading the kernels on a device,
 * and giving back what the driver keeps for a process that uses it. */
#ifndef RV_CUDA_LOAD_CODE_H
#define RV_CUDA_LOAD_CODE_H

#include "base/err.h"

#ifdef RV_CUDA_DRIVER
#include "kernels/cuda/driver/device_code.h"
#endif

/* Loads all kernels, before the first launch: not in a capture. RV_E_UNSUPPORTED: there is no code
 * for this card, or the driver refuses it. */
static inline enum rv_err cuda_load_code(int device, struct rv_errtext *et) {
#ifdef RV_CUDA_DRIVER
	return device_code_load(device, et);
#else
	(void)device;
	(void)et;
	return RV_OK;
#endif
}

/* Count a user of a device, and end its use: with the last one its context is released. The CUDA
 * runtime keeps it until the process ends. */
static inline void cuda_hold_device(int device) {
#ifdef RV_CUDA_DRIVER
	driver_hold(device);
#else
	(void)device;
#endif
}
static inline void cuda_let_go_device(int device) {
#ifdef RV_CUDA_DRIVER
	driver_let_go(device);
#else
	(void)device;
#endif
}

#endif
