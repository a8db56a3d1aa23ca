/* kernel.h: a kernel and its launch, as the host's code has them (host_pass.cuh): C and C++. */
#ifndef RV_CUDA_DRIVER_KERNEL_H
#define RV_CUDA_DRIVER_KERNEL_H

#include "kernels/cuda/vendor/driver_runtime.h"

enum { DRIVER_DEVICES_MAX = 64 };

struct kernel_handle {
	const char *name;                         /* as in struct code_name, and a ']' behind it */
	void *functions[DRIVER_DEVICES_MAX];      /* of devices that have launched it; atomic, as is: */
	unsigned generations[DRIVER_DEVICES_MAX]; /* the context (driver_generation) of that; 0: none */
};

struct kernel_launch {
	unsigned grid[3], block[3];
	size_t shared_bytes;
	cudaStream_t stream;
};

#ifdef __cplusplus
extern "C" {
#endif
/* Enqueues a kernel on the calling thread's device, with pointers to its arguments. */
cudaError_t kernel_enqueue(struct kernel_handle *k, const struct kernel_launch *launch, void **arguments);
#ifdef __cplusplus
}
#endif

#endif
