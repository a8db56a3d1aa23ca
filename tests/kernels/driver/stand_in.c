/* stand_in.c: see stand_in.h: the device, its memory, streams, events and graphs. */
#include "tests/kernels/driver/stand_in_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC visibility push(default)

enum {
	DEFAULT_CAPABILITY = 90,
	DEFAULT_DRIVER = 12000,
	MEMORY_GIB = 24,
	ERROR_NOT_INITIALIZED = 3,
	ERROR_CONTEXT = 201
};

struct CUctx_st {
	unsigned flags;
	bool is_alive;
};
enum { CONTEXTS_MAX = 64 };
struct CUstream_st {
	bool captures;
};
struct CUevent_st {
	unsigned flags;
	struct timespec at;
};
struct CUgraph_st {
	int unused;
};
struct CUgraphExec_st {
	int unused;
};

struct stand_in_counts stand_in;
static bool is_initialized;
static struct CUctx_st contexts[CONTEXTS_MAX]; /* one after the other; none is used again */
static int n_contexts, references;
static unsigned primary_flags;
static _Thread_local CUcontext current;

struct stand_in_counts stand_in_count(void) {
	return stand_in;
}

static int setting(const char *name, int fallback) {
	const char *said = getenv(name);
	return said && *said ? atoi(said) : fallback;
}

int stand_in_capability(void) {
	return setting("RIVULET_STAND_IN_CAPABILITY", DEFAULT_CAPABILITY);
}

/* Returns the error of a call that needs a context; CUDA_SUCCESS: the thread has one that is not
 * released. */
static CUresult needs_context(void) {
	return current && current->is_alive ? CUDA_SUCCESS : ERROR_CONTEXT;
}

CUresult cuInit(unsigned flags) {
	is_initialized = flags == 0;
	return is_initialized ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version) {
	*version = setting("RIVULET_STAND_IN_DRIVER", DEFAULT_DRIVER);
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
	(void)error;
	*text = "the stand-in driver refuses it";
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
	*n = 1;
	return is_initialized ? CUDA_SUCCESS : ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
	*out = 0;
	return ordinal == 0 && is_initialized ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
	(void)device;
	strncpy(name, "Stand-in", (size_t)bytes);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device) {
	(void)device;
	*value =
		what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? stand_in_capability() / 10 : stand_in_capability() % 10;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
	(void)device;
	*bytes = (size_t)MEMORY_GIB << 30;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
	primary_flags = flags;
	if (references > 0)
		contexts[n_contexts - 1].flags = flags;
	return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
	if (device != 0 || n_contexts == CONTEXTS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (references++ == 0) {
		contexts[n_contexts++] = (struct CUctx_st){primary_flags, true};
		stand_in.contexts++;
	}
	*out = &contexts[n_contexts - 1];
	return CUDA_SUCCESS;
}

/* It stays current in threads, which can do nothing with it. */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
	if (device != 0 || references == 0)
		return ERROR_CONTEXT;
	if (--references == 0) {
		contexts[n_contexts - 1].is_alive = false;
		stand_in.contexts--;
	}
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c) {
	current = c;
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

static void *pointer(CUdeviceptr p) {
	return (void *)(uintptr_t)p;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
	*available = *total = (size_t)MEMORY_GIB << 30;
	return needs_context();
}

static CUresult allocate(void **out, size_t bytes) {
	if (needs_context() != CUDA_SUCCESS || bytes == 0)
		return current ? CUDA_ERROR_INVALID_VALUE : ERROR_CONTEXT;
	*out = aligned_alloc(256, (bytes + 255) / 256 * 256);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(*out, 0, bytes);
	stand_in.allocations++;
	return CUDA_SUCCESS;
}

static CUresult release(void *p) {
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	free(p);
	stand_in.allocations--;
	return needs_context();
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
	void *p = NULL;
	CUresult e = allocate(&p, bytes);
	*out = (uintptr_t)p;
	return e;
}

CUresult cuMemFree_v2(CUdeviceptr p) {
	return release(pointer(p));
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes) {
	return allocate(out, bytes);
}

CUresult cuMemFreeHost(void *p) {
	return release(p);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags) {
	(void)flags;
	return p && bytes ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostUnregister(void *p) {
	return p ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

/* Copies, unless the stream captures. */
static CUresult copy(void *to, const void *from, size_t bytes, CUstream s) {
	if (s && !s->captures)
		memmove(to, from, bytes);
	return s && to && from ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
	return copy(pointer(to), from, bytes, s);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
	return copy(to, pointer(from), bytes, s);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
	return copy(pointer(to), pointer(from), bytes, s);
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char byte, size_t bytes, CUstream s) {
	if (s && !s->captures)
		memset(pointer(p), byte, bytes);
	return s && p ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

/* ---- streams, events, graphs ---- */

bool stand_in_captures(CUstream s) {
	return s && s->captures;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
	*out = calloc(1, sizeof **out);
	return *out && flags == CU_STREAM_NON_BLOCKING ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamDestroy_v2(CUstream s) {
	free(s);
	return needs_context();
}

static CUresult state_of(CUstream s) {
	return stand_in_captures(s) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : needs_context();
}

static void count_wait(bool sleeps) {
	stand_in.sleeps += sleeps;
	stand_in.spins += !sleeps;
}

CUresult cuStreamSynchronize(CUstream s) {
	count_wait(current && (current->flags & CU_CTX_SCHED_BLOCKING_SYNC) != 0);
	return state_of(s);
}

CUresult cuStreamQuery(CUstream s) {
	return state_of(s);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
	(void)flags;
	return s && e ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
	s->captures = true;
	return mode == CU_STREAM_CAPTURE_MODE_RELAXED ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
	bool captured = s->captures;
	s->captures = false;
	*out = captured ? calloc(1, sizeof **out) : NULL;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
	*status = stand_in_captures(s) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
	*out = calloc(1, sizeof **out);
	if (*out)
		(*out)->flags = flags;
	return *out ? needs_context() : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent e) {
	free(e);
	return needs_context();
}

CUresult cuEventRecord(CUevent e, CUstream s) {
	(void)clock_gettime(CLOCK_MONOTONIC, &e->at);
	return s ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventSynchronize(CUevent e) {
	count_wait(e && (e->flags & CU_EVENT_BLOCKING_SYNC) != 0);
	return e ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventQuery(CUevent e) {
	return e ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
	*ms = (float)((double)(end->at.tv_sec - begin->at.tv_sec) * 1e3 +
				  (double)(end->at.tv_nsec - begin->at.tv_nsec) * 1e-6);
	return needs_context();
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
	*out = graph && flags == 0 ? calloc(1, sizeof **out) : NULL;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream s) {
	stand_in.graph_launches++;
	return graph && s ? needs_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroy(CUgraph graph) {
	free(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec graph) {
	free(graph);
	return CUDA_SUCCESS;
}
