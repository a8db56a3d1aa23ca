/* runtime.h: the part of the CUDA runtime API that kernels/cuda/ uses, as the emulator has it. TEST
 * ONLY.
 *
 * The emulator runs the .cu files that ship, compiled as C++, on the CPU: one OS thread, the
 * threads of a block as fibers (emu/block.h), one block after the other. What it is for: running
 * every kernel in CI without a GPU, in orders of threads and streams that a GPU might choose, under
 * AddressSanitizer, and with every access to shared memory checked (emu/shared.h). What it cannot
 * show: speed, and races between blocks through global memory.
 *
 * Streams      EAGER: work runs when it is enqueued. LAZY: work runs only when something waits for
 *              it (a synchronize, or an event that another stream waits for), so that a wait that
 *              was forgotten shows as stale data. Copies from and to host memory are as late as all
 *              else: as for pinned memory, the host must wait.
 * Graphs       a stream that captures keeps what it is given instead of running it; a graph runs
 *              it again, with the arguments (pointers, not what they point to) of the capture.
 *              Cross-stream captures are not emulated.
 * Captures     follow CUDA's programming guide (CUDA graphs, stream capture) and
 *              cudaThreadExchangeStreamCaptureMode. Waiting for or querying the stream or the
 *              device, an event, or a second capture returns an error and spoils the capture; what
 *              is enqueued later is refused. Allocating, freeing, registering memory, and waiting
 *              for or querying anything else is an error under a Global capture, or a ThreadLocal
 *              one of the calling thread. A Relaxed capture of the calling thread permits it; but a
 *              graph does not repeat it: the emulator reports a fault.
 * Time         a clock of the device, which cudaEventElapsedTime reads: a launch takes 1 us, all
 *              else what emu_spend says.
 * Failures     emu_refuse makes a call fail; emu_break makes the device return one error for ever,
 *              as a device does behind a kernel that accessed memory out of bounds.
 * Memory       device memory is host memory, filled with NaN bytes when allocated.
 * Faults       print one line - kernel, block, thread, source line, and what is wrong - and end
 *              the process with status EMU_FAULT_STATUS.
 * Threads      one OS thread at a time; calls from several take turns (one lock around every call).
 *
 *
 * C and C++. */
#ifndef RV_TESTS_EMU_RUNTIME_H
#define RV_TESTS_EMU_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EMU_FAULT_STATUS = 99 };

enum emu_order { EMU_FORWARD, EMU_REVERSE, EMU_RANDOM };
enum emu_streams { EMU_EAGER, EMU_LAZY };

struct emu_options {
	enum emu_order order; /* in which the threads of a block, and the blocks of a grid, take turns */
	enum emu_streams streams;
	uint64_t seed; /* of EMU_RANDOM */
};

struct emu_counters {
	uint64_t launches, blocks, threads, switches;
	uint64_t stream_waits, graph_launches; /* cudaStreamSynchronize; cudaGraphLaunch */
	uint64_t allocations;                  /* calls of cudaMalloc and cudaMallocHost that gave memory */
	size_t device_bytes, pinned_bytes;     /* allocated now */
	size_t device_peak_bytes;              /* the most that was allocated since emu_limit_memory, or the start */
};

/* Calls that a test can make fail. */
enum emu_call { EMU_MALLOC, EMU_BEGIN_CAPTURE, EMU_END_CAPTURE, EMU_INSTANTIATE, EMU_GRAPH_LAUNCH, EMU_CALLS };

/* Applies to what is launched from now on. */
void emu_configure(const struct emu_options *options);
struct emu_counters emu_count(void);
/* Makes the device's memory so large from now on: EMU_MEMORY_BYTES at the start, or what the
 * environment variable RIVULET_EMU_MEMORY_BYTES says. What is allocated stays. */
#define EMU_MEMORY_BYTES ((size_t)4 << 30)
void emu_limit_memory(size_t bytes);

typedef int cudaError_t;
enum {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorNotSupported = 801,
	cudaErrorStreamCaptureUnsupported = 900,
	cudaErrorStreamCaptureInvalidated = 901,
	cudaErrorStreamCaptureImplicit = 906,
	cudaErrorCapturedEvent = 907,
	cudaErrorStreamCaptureWrongThread = 908
};
enum {
	cudaStreamNonBlocking = 1,
	cudaEventBlockingSync = 1,
	cudaEventDisableTiming = 2,
	cudaDeviceScheduleBlockingSync = 4
};
enum cudaMemcpyKind {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault
};
typedef struct emu_stream *cudaStream_t; /* NULL: the default stream, which waits for no other here */
typedef struct emu_event *cudaEvent_t;
typedef struct emu_graph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal,
	cudaStreamCaptureModeThreadLocal,
	cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone,
	cudaStreamCaptureStatusActive,
	cudaStreamCaptureStatusInvalidated
};

struct cudaDeviceProp {
	char name[256];
	size_t totalGlobalMem;
	int multiProcessorCount, major, minor;
};

cudaError_t cudaGetDeviceCount(int *n);         /* 2, which share one memory */
cudaError_t cudaDriverGetVersion(int *version); /* 12000 */
cudaError_t cudaSetDevice(int device);
cudaError_t cudaSetDeviceFlags(unsigned flags); /* nothing here waits */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);

/* 256-byte aligned; limited in all (emu_limit_memory), so that running out can be tested. Pinned
 * memory is the host's: it does not count. */
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *p); /* waits for all streams first */
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *p);
enum { cudaHostRegisterDefault = 0 };
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags); /* what is not registered twice */
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *dst, int byte, size_t bytes, cudaStream_t s);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

/* What a library would do on the device: work(arg), in the order of the stream, arg being a copy of
 * the bytes given: once for each launch when it was captured. */
cudaError_t emu_enqueue(cudaStream_t s, void (*work)(const void *arg), const void *arg, size_t bytes);
/* Lets the device's clock advance when the stream comes there. */
cudaError_t emu_spend(cudaStream_t s, float ms);
/* Returns whether the calling thread captures: for stand-ins of libraries, which must not query a
 * device then. */
bool emu_thread_captures(void);
/* The next `times` calls of `call` return `error` and do nothing; a capture ends all the same.
 * cudaErrorIllegalAddress breaks the device, as its cause would. */
void emu_refuse(enum emu_call call, cudaError_t error, int times);
/* Makes all that enqueues, waits, allocates or asks for the last error return `error`; cudaSuccess
 * mends the device. */
void emu_break(cudaError_t error);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t e);
const char *cudaGetErrorString(cudaError_t e);

#ifdef __cplusplus
}
#endif
#endif
