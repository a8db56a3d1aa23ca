/* driver_runtime.h: the part of the CUDA runtime API that kernels/cuda/ uses, upon the driver's own
 * library (libcuda.so.1), which is looked for at run time: no CUDA runtime is linked, and none is
 * needed.
 *
 * Functions and types have the runtime's names and meaning (docs.nvidia.com/cuda/cuda-runtime-api).
 * Streams, events and graphs are the driver's, and so NVIDIA's libraries take them. A device's
 * primary context is used, which those libraries use too: from the first call that needs one until
 * the device's last user lets it go (driver_let_go). Error numbers are the driver's: the runtime's
 * are equal, but for cudaErrorInsufficientDriver.
 *
 * Threads      each has its own current device (0 at first) and last error. */
#ifndef RV_CUDA_VENDOR_DRIVER_RUNTIME_H
#define RV_CUDA_VENDOR_DRIVER_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The toolkit that compiled the device code, as in cuda.h; its major version is the oldest driver's
 * that the plugin runs on. */
#define CUDART_VERSION RV_CUDA_VERSION

typedef int cudaError_t;
enum {
	cudaSuccess = 0,
	cudaErrorInsufficientDriver = 35,
	cudaErrorNotReady = 600,
	cudaErrorStreamCaptureUnsupported = 900,
	cudaErrorStreamCaptureWrongThread = 908
};
enum {
	cudaStreamNonBlocking = 1,
	cudaEventBlockingSync = 1,
	cudaEventDisableTiming = 2,
	cudaDeviceScheduleBlockingSync = 4,
	cudaHostRegisterDefault = 0
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone,
	cudaStreamCaptureStatusActive,
	cudaStreamCaptureStatusInvalidated
};
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

struct cudaDeviceProp {
	char name[256];
	size_t totalGlobalMem;
	int major, minor;
};

/* Returns cudaErrorInsufficientDriver without a driver, or with one older than CUDART_VERSION's
 * major version. */
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *version); /* 0: there is none */
cudaError_t cudaSetDevice(int device);
/* Sets how threads wait for the current device. Contexts are made with
 * cudaDeviceScheduleBlockingSync. */
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);

cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *p); /* NULL is fine */
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *p); /* NULL is fine */
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t s);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t e);

#ifdef __cplusplus
}
#endif
#endif
