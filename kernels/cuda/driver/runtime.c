/* runtime.c: see kernels/cuda/vendor/driver_runtime.h. */
#include "base/assert.h"
#include "kernels/cuda/driver/device_code.h"
#include "kernels/cuda/driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Drivers of the toolkit's major version run its code (CUDA's minor version compatibility). */
enum { OLDEST_DRIVER = 12000 };
#define OLDEST_TEXT "12.0 (525)"
_Static_assert(CUDART_VERSION / 1000 * 1000 == OLDEST_DRIVER, "the oldest driver is the toolkit's");

_Static_assert((int)cudaErrorNotReady == (int)CUDA_ERROR_NOT_READY &&
				   (int)cudaErrorStreamCaptureUnsupported == (int)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
				   (int)cudaErrorStreamCaptureWrongThread == (int)CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD &&
				   (int)cudaStreamCaptureModeRelaxed == (int)CU_STREAM_CAPTURE_MODE_RELAXED &&
				   (int)cudaStreamCaptureStatusInvalidated == (int)CU_STREAM_CAPTURE_STATUS_INVALIDATED &&
				   (int)cudaStreamNonBlocking == (int)CU_STREAM_NON_BLOCKING &&
				   (int)cudaEventDisableTiming == (int)CU_EVENT_DISABLE_TIMING &&
				   (int)cudaEventBlockingSync == (int)CU_EVENT_BLOCKING_SYNC &&
				   (int)cudaDeviceScheduleBlockingSync == (int)CU_CTX_SCHED_BLOCKING_SYNC,
			   "the driver's numbers are the runtime's");

/* ---- the library ---- */

/* What the process knows of its driver. `lock` is held while it is looked for, and while a context
 * is made or released; `uses`, before it, while users are counted and the last one goes. */
static struct {
	pthread_mutex_t lock, uses;
	bool searched;
	struct driver_api api;
	cudaError_t fault; /* why `api` cannot be used; cudaSuccess: it can */
	int version;       /* 0: no driver */
	struct device_context {
		CUcontext handle; /* NULL: there is none */
		int users;
		atomic_uint released; /* how often; read without the lock */
	} contexts[DRIVER_DEVICES_MAX];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .uses = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int current_device;          /* of this thread, once has_device */
static _Thread_local unsigned current_generation; /* of the context that is current */
static _Thread_local bool has_device;
static _Thread_local cudaError_t last_error;

static bool load_functions(struct driver_api *api) {
	static const struct {
		const char *name;
		size_t at;
	} functions[] = {
#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct driver_api, name)},
#include "kernels/cuda/vendor/driver.def"
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library && i < sizeof functions / sizeof functions[0]; i++) {
		void *function = dlsym(library, functions[i].name);
		if (!function)
			return false;
		memcpy((char *)api + functions[i].at, &function, sizeof function);
	}
	return library != NULL;
}

static cudaError_t start(void) {
	if (!load_functions(&driver.api))
		return cudaErrorInsufficientDriver;
	if (driver.api.cuDriverGetVersion(&driver.version) != CUDA_SUCCESS || driver.version < OLDEST_DRIVER)
		return cudaErrorInsufficientDriver;
	return driver.api.cuInit(0);
}

const struct driver_api *driver_get(cudaError_t *why) {
	(void)pthread_mutex_lock(&driver.lock);
	if (!driver.searched)
		driver.fault = start();
	driver.searched = true;
	(void)pthread_mutex_unlock(&driver.lock);
	if (why)
		*why = driver.fault;
	return driver.fault == cudaSuccess ? &driver.api : NULL;
}

cudaError_t driver_note(cudaError_t e) {
	if (e != cudaSuccess && e != cudaErrorNotReady)
		last_error = e;
	return e;
}

cudaError_t cudaGetLastError(void) {
	cudaError_t e = last_error;
	last_error = cudaSuccess;
	return e;
}

const char *cudaGetErrorString(cudaError_t e) {
	const char *text = NULL;
	if (e == cudaErrorInsufficientDriver)
		return driver.version > 0 ? "the driver is older than CUDA " OLDEST_TEXT ": install a newer one"
								  : "there is no driver (libcuda.so.1)";
	const struct driver_api *api = driver_get(NULL);
	return api && api->cuGetErrorString(e, &text) == CUDA_SUCCESS && text ? text
																		  : "an error that the driver has no words for";
}

/* ---- devices ---- */

cudaError_t cudaDriverGetVersion(int *version) {
	(void)driver_get(NULL);
	*version = driver.version;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n) {
	cudaError_t e;
	const struct driver_api *api = driver_get(&e);
	*n = 0;
	return driver_note(api ? api->cuDeviceGetCount(n) : e);
}

unsigned driver_generation(int device) {
	return atomic_load(&driver.contexts[device].released) + 1;
}

/* Makes the device's primary context, which it has until its last user lets it go. Threads that
 * wait for the device sleep. With the lock. */
static cudaError_t retain(const struct driver_api *api, int device) {
	CUdevice handle;
	cudaError_t e = api->cuDeviceGet(&handle, device);
	if (e == cudaSuccess)
		e = api->cuDevicePrimaryCtxSetFlags_v2(handle, CU_CTX_SCHED_BLOCKING_SYNC);
	if (e == cudaSuccess)
		e = api->cuDevicePrimaryCtxRetain(&driver.contexts[device].handle, handle);
	return e;
}

/* Makes the device's context current in this thread. */
static cudaError_t enter(const struct driver_api *api, int device) {
	(void)pthread_mutex_lock(&driver.lock);
	const struct device_context *c = &driver.contexts[device];
	cudaError_t e = c->handle ? cudaSuccess : retain(api, device);
	if (e == cudaSuccess)
		e = api->cuCtxSetCurrent(c->handle);
	if (e == cudaSuccess) {
		current_device = device;
		current_generation = driver_generation(device);
		has_device = true;
	}
	(void)pthread_mutex_unlock(&driver.lock);
	return e;
}

static cudaError_t use_device(const struct driver_api *api, int device) {
	if (device < 0 || device >= DRIVER_DEVICES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (has_device && current_device == device && current_generation == driver_generation(device))
		return cudaSuccess;
	return enter(api, device);
}

void driver_hold(int device) {
	(void)pthread_mutex_lock(&driver.uses);
	driver.contexts[device].users++;
	(void)pthread_mutex_unlock(&driver.uses);
}

/* Releases the context. Other threads, where it may be current, find another generation. */
static void release(const struct driver_api *api, int device) {
	struct device_context *c = &driver.contexts[device];
	CUdevice handle;
	device_code_unload(device);
	(void)pthread_mutex_lock(&driver.lock);
	if (has_device && current_device == device)
		(void)api->cuCtxSetCurrent(NULL);
	if (api->cuDeviceGet(&handle, device) == CUDA_SUCCESS)
		(void)driver_note(api->cuDevicePrimaryCtxRelease_v2(handle));
	c->handle = NULL;
	atomic_fetch_add(&c->released, 1);
	(void)pthread_mutex_unlock(&driver.lock);
}

void driver_let_go(int device) {
	const struct driver_api *api = driver_get(NULL);
	struct device_context *c = &driver.contexts[device];
	(void)pthread_mutex_lock(&driver.uses);
	RV_ASSERT(c->users > 0);
	if (--c->users == 0 && c->handle)
		release(api, device);
	(void)pthread_mutex_unlock(&driver.uses);
}

cudaError_t cudaSetDevice(int device) {
	cudaError_t e;
	const struct driver_api *api = driver_get(&e);
	return driver_note(api ? use_device(api, device) : e);
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
	cudaError_t e;
	CUdevice handle = 0;
	const struct driver_api *api = driver_get(&e);
	if (api)
		e = api->cuDeviceGet(&handle, has_device ? current_device : 0);
	if (api && e == cudaSuccess)
		e = api->cuDevicePrimaryCtxSetFlags_v2(handle, flags);
	return driver_note(e);
}

cudaError_t driver_device(int *device) {
	cudaError_t e;
	const struct driver_api *api = driver_get(&e);
	if (api)
		e = use_device(api, has_device ? current_device : 0);
	*device = current_device;
	return driver_note(e);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
	cudaError_t e;
	CUdevice handle = 0;
	const struct driver_api *api = driver_get(&e);
	memset(out, 0, sizeof *out);
	if (!api)
		return driver_note(e);
	e = api->cuDeviceGet(&handle, device);
	if (e == cudaSuccess)
		e = api->cuDeviceGetName(out->name, (int)sizeof out->name, handle);
	if (e == cudaSuccess)
		e = api->cuDeviceGetAttribute(&out->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
	if (e == cudaSuccess)
		e = api->cuDeviceGetAttribute(&out->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
	if (e == cudaSuccess)
		e = api->cuDeviceTotalMem_v2(&out->totalGlobalMem, handle);
	return driver_note(e);
}

/* ---- calls in the thread's context ---- */

/* Calls a function of the driver with the thread's context current, and returns its error. */
#define CALL(function, ...)                                                                                            \
	do {                                                                                                               \
		int device_;                                                                                                   \
		cudaError_t e_ = driver_device(&device_);                                                                      \
		return e_ == cudaSuccess ? driver_note(driver.api.function(__VA_ARGS__)) : e_;                                 \
	} while (0)

static CUdeviceptr address(const void *p) {
	return (CUdeviceptr)(uintptr_t)p;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
	CALL(cuMemGetInfo_v2, available, total);
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
	CUdeviceptr p = 0;
	int device;
	cudaError_t e = driver_device(&device);
	if (e == cudaSuccess && bytes > 0)
		e = driver_note(driver.api.cuMemAlloc_v2(&p, bytes));
	*out = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaFree(void *p) {
	if (!p)
		return cudaSuccess;
	CALL(cuMemFree_v2, address(p));
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
	*out = NULL;
	if (bytes == 0)
		return cudaSuccess;
	CALL(cuMemAllocHost_v2, out, bytes);
}

cudaError_t cudaFreeHost(void *p) {
	if (!p)
		return cudaSuccess;
	CALL(cuMemFreeHost, p);
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags) {
	CALL(cuMemHostRegister_v2, p, bytes, flags);
}

cudaError_t cudaHostUnregister(void *p) {
	CALL(cuMemHostUnregister, p);
}

static cudaError_t copy_to_host(void *to, const void *from, size_t bytes, cudaStream_t s) {
	CALL(cuMemcpyDtoHAsync_v2, to, address(from), bytes, s);
}

static cudaError_t copy_on_device(void *to, const void *from, size_t bytes, cudaStream_t s) {
	CALL(cuMemcpyDtoDAsync_v2, address(to), address(from), bytes, s);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s) {
	if (bytes == 0)
		return cudaSuccess;
	if (kind == cudaMemcpyDeviceToHost)
		return copy_to_host(to, from, bytes, s);
	if (kind == cudaMemcpyDeviceToDevice)
		return copy_on_device(to, from, bytes, s);
	CALL(cuMemcpyHtoDAsync_v2, address(to), from, bytes, s);
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t s) {
	if (bytes == 0)
		return cudaSuccess;
	CALL(cuMemsetD8Async, address(p), (unsigned char)byte, bytes, s);
}

/* Defines a function of the runtime that is one of the driver's, in the thread's context. */
#define FORWARD(name, parameters, ...)                                                                                 \
	cudaError_t name parameters {                                                                                      \
		CALL(__VA_ARGS__);                                                                                             \
	}

FORWARD(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags), cuStreamCreate, out, flags)
FORWARD(cudaStreamDestroy, (cudaStream_t s), cuStreamDestroy_v2, s)
FORWARD(cudaStreamSynchronize, (cudaStream_t s), cuStreamSynchronize, s)
FORWARD(cudaStreamQuery, (cudaStream_t s), cuStreamQuery, s)
FORWARD(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags), cuStreamWaitEvent, s, e, flags)
FORWARD(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags), cuEventCreate, out, flags)
FORWARD(cudaEventDestroy, (cudaEvent_t e), cuEventDestroy_v2, e)
FORWARD(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), cuEventRecord, e, s)
FORWARD(cudaEventSynchronize, (cudaEvent_t e), cuEventSynchronize, e)
FORWARD(cudaEventQuery, (cudaEvent_t e), cuEventQuery, e)
FORWARD(cudaEventElapsedTime, (float *ms, cudaEvent_t begin, cudaEvent_t end), cuEventElapsedTime, ms, begin, end)
FORWARD(cudaStreamBeginCapture, (cudaStream_t s, enum cudaStreamCaptureMode mode), cuStreamBeginCapture_v2, s,
		(CUstreamCaptureMode)mode)
FORWARD(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t *out), cuStreamEndCapture, s, out)
FORWARD(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
		cuGraphInstantiateWithFlags, out, graph, flags)
FORWARD(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t s), cuGraphLaunch, graph, s)
FORWARD(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy, graph)
FORWARD(cudaGraphExecDestroy, (cudaGraphExec_t graph), cuGraphExecDestroy, graph)

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out) {
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	int device;
	cudaError_t e = driver_device(&device);
	if (e == cudaSuccess)
		e = driver_note(driver.api.cuStreamIsCapturing(s, &status));
	*out = (enum cudaStreamCaptureStatus)status;
	return e;
}
