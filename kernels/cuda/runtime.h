/* runtime.h: the CUDA runtime API for host code in C: the real one, or the emulator's (kernels/emu/, tests only). */
#ifndef RV_CUDA_RUNTIME_H
#define RV_CUDA_RUNTIME_H

#ifdef RV_CUDA_EMU
#include "kernels/emu/runtime.h"
#else
#include <cuda_runtime_api.h>
#endif

#include <stdbool.h>

/* Whether `s` captures and cannot come to a good end any more: what is enqueued is refused, and that is no fault. */
static inline bool cuda_capture_is_spoilt(cudaStream_t s) {
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	return cudaStreamIsCapturing(s, &status) != cudaSuccess || status == cudaStreamCaptureStatusInvalidated;
}

#endif
