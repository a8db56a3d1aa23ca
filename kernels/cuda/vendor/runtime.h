/* runtime.h: the CUDA runtime API for host code: the toolkit's, ours upon the driver (driver/), or
 * the emulator's (tests/emu/, tests only). */
#ifndef RV_CUDA_RUNTIME_H
#define RV_CUDA_RUNTIME_H

#ifdef RV_CUDA_EMU
#include <emu/runtime.h>
#elif defined(__CUDACC_RTC__) /* NVRTC has the types; device code calls nothing of it */
#elif defined(RV_CUDA_DRIVER)
#include "kernels/cuda/vendor/driver_runtime.h"
#else
#include <cuda_runtime_api.h>
#endif

#ifndef __CUDACC_RTC__
#include <stdbool.h>

/* Returns true if `s` captures, the capture spoilt or not. */
static inline bool cuda_captures(cudaStream_t s) {
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	return cudaStreamIsCapturing(s, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

/* Returns true if `s` captures and CUDA has invalidated the capture: it refuses all work, which is
 * no fault. */
static inline bool cuda_capture_is_spoilt(cudaStream_t s) {
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	return cudaStreamIsCapturing(s, &status) == cudaSuccess && status == cudaStreamCaptureStatusInvalidated;
}

/* Returns the error that has ended all work of the device (after an illegal access, a lost device),
 * else cudaSuccess. `s` must not capture. Clears a last error that has not ended it. */
static inline cudaError_t cuda_device_fault(cudaStream_t s) {
	(void)cudaGetLastError();
	cudaError_t e = cudaStreamQuery(s);
	return e == cudaErrorNotReady ? cudaSuccess : e;
}

#endif

#endif
