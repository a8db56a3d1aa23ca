/* load_code.h: loading the kernels on a device, where the CUDA runtime does not do it by itself. */
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

#endif
