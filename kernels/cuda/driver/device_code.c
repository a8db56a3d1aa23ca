/* device_code.c: see device_code.h. */
#include "kernels/cuda/driver/device_code.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { STATIC_SHARED_BYTES = 48 << 10 }; /* more dynamic shared memory has to be asked for */

/* `lock` is held while a device's units are loaded. */
static struct {
	pthread_mutex_t lock;
	CUmodule modules[DRIVER_DEVICES_MAX][CODE_UNITS_MAX];
	bool loaded[DRIVER_DEVICES_MAX];
} code = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Chooses the image for a card: machine code of its major version and at most its minor one, the
 * newest; else PTX that is not newer. NULL: none. */
static const struct code_image *code_image_for(const struct code_image *images, int capability) {
	const struct code_image *best = NULL;
	for (const struct code_image *i = images; i->bytes; i++) {
		bool same_major = i->capability / 10 == capability / 10;
		if (i->capability <= capability && (i->is_ptx ? !best : same_major))
			best = i;
	}
	return best;
}

static enum rv_err load_unit(const struct driver_api *api, const struct code_unit *u, int capability, CUmodule *out,
							 struct rv_errtext *et) {
	const struct code_image *image = code_image_for(u->images, capability);
	if (!image)
		return rv_fail(et, RV_E_UNSUPPORTED, "this plugin has no code for compute capability %d.%d (%s)",
					   capability / 10, capability % 10, u->name);
	CUresult e = api->cuModuleLoadData(out, image->bytes);
	if (e == CUDA_SUCCESS)
		return RV_OK;
	return rv_fail(et, RV_E_UNSUPPORTED, "the driver does not take the %s of %s for compute capability %d.%d: %s",
				   image->is_ptx ? "PTX" : "code", u->name, image->capability / 10, image->capability % 10,
				   cudaGetErrorString(e));
}

static enum rv_err load_units(const struct driver_api *api, int device, struct rv_errtext *et) {
	struct cudaDeviceProp card;
	cudaError_t e = cudaGetDeviceProperties(&card, device);
	if (e == cudaSuccess)
		e = cudaSetDevice(device);
	if (e != cudaSuccess)
		return rv_fail(et, RV_E_UNSUPPORTED, "GPU %d: %s", device, cudaGetErrorString(e));
	for (int i = 0; code_units[i]; i++) {
		RV_ASSERT(i < CODE_UNITS_MAX);
		RV_TRY(load_unit(api, code_units[i], card.major * 10 + card.minor, &code.modules[device][i], et));
	}
	return RV_OK;
}

enum rv_err device_code_load(int device, struct rv_errtext *et) {
	cudaError_t why;
	const struct driver_api *api = driver_get(&why);
	if (!api)
		return rv_fail(et, RV_E_UNSUPPORTED, "GPU %d: %s", device, cudaGetErrorString(why));
	RV_ASSERT(device >= 0 && device < DRIVER_DEVICES_MAX);
	(void)pthread_mutex_lock(&code.lock);
	enum rv_err e = code.loaded[device] ? RV_OK : load_units(api, device, et);
	code.loaded[device] = e == RV_OK;
	(void)pthread_mutex_unlock(&code.lock);
	return e;
}

void device_code_unload(int device) {
	const struct driver_api *api = driver_get(NULL);
	(void)pthread_mutex_lock(&code.lock);
	if (cudaSetDevice(device) == cudaSuccess)
		for (int i = 0; code_units[i]; i++)
			if (code.modules[device][i])
				(void)driver_note(api->cuModuleUnload(code.modules[device][i]));
	memset(code.modules[device], 0, sizeof code.modules[device]);
	code.loaded[device] = false;
	(void)pthread_mutex_unlock(&code.lock);
}

/* Returns true if `asked` is the kernel's name, which ends at the last ']' of what a compiler
 * wrote. */
static bool is_name(const char *asked, const char *written) {
	const char *end = strrchr(written, ']');
	size_t n = end ? (size_t)(end - written) : strlen(written);
	return strlen(asked) == n && memcmp(asked, written, n) == 0;
}

/* Finds the kernel in the device's modules; that it is there was checked when the plugin was
 * built. */
static cudaError_t find(const struct driver_api *api, int device, const char *written, CUfunction *out) {
	for (int i = 0; code_units[i]; i++)
		for (const struct code_name *n = code_units[i]->names; n->asked; n++)
			if (is_name(n->asked, written))
				return api->cuModuleGetFunction(out, code.modules[device][i], n->lowered);
	RV_UNREACHABLE("every kernel of the host's code is in a unit");
}

/* Looks a kernel up once in each context of the device. */
static cudaError_t function_of(const struct driver_api *api, struct kernel_handle *k, int device, CUfunction *out) {
	const unsigned generation = driver_generation(device);
	if (__atomic_load_n(&k->generations[device], __ATOMIC_ACQUIRE) == generation) {
		*out = (CUfunction)__atomic_load_n(&k->functions[device], __ATOMIC_RELAXED);
		return cudaSuccess;
	}
	cudaError_t e = find(api, device, k->name, out);
	if (e != cudaSuccess)
		return e;
	__atomic_store_n(&k->functions[device], (void *)*out, __ATOMIC_RELAXED);
	__atomic_store_n(&k->generations[device], generation, __ATOMIC_RELEASE);
	return cudaSuccess;
}

cudaError_t kernel_enqueue(struct kernel_handle *k, const struct kernel_launch *l, void **arguments) {
	int device;
	const struct driver_api *api = driver_get(NULL);
	cudaError_t e = driver_device(&device);
	if (e != cudaSuccess)
		return e;
	RV_ASSERT(code.loaded[device]);
	CUfunction f;
	e = function_of(api, k, device, &f);
	if (e != cudaSuccess)
		return driver_note(e);
	if (l->shared_bytes > STATIC_SHARED_BYTES)
		e = api->cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)l->shared_bytes);
	if (e == cudaSuccess)
		e = api->cuLaunchKernel(f, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
								(unsigned)l->shared_bytes, l->stream, arguments, NULL);
	return driver_note(e);
}
