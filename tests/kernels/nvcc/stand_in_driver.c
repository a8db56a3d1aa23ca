/* stand_in_driver.c: a libcuda.so.1 for machines that have none: there is no device, and modules
 * load without being run.
 *
 * cuDNN chooses an engine for a graph and compiles its kernel on the host; only then does it hand
 * the module to the driver. With this in the driver's place that hand-over succeeds, so that a plan
 * is made as far as it can be without a GPU. Nothing can be launched: what needs a device says that
 * there is none (stand_in_refusals.c). */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

enum { DRIVER_VERSION = 13000 };

#pragma GCC visibility push(default)

CUresult cuInit(unsigned flags) {
	(void)flags;
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
	*version = DRIVER_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
	*count = 0;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
	(void)error;
	*text = "the stand-in driver of the tests";
	return CUDA_SUCCESS;
}

static char module, kernel; /* their addresses are the handles */

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values, unsigned n_jit,
						   CUlibraryOption *options, void **values, unsigned n) {
	(void)code, (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
	*library = (CUlibrary)(void *)&module;
	return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library) {
	(void)library;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
	(void)library, (void)name;
	*out = (CUkernel)(void *)&kernel;
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
						  CUdriverProcAddressQueryResult *status) {
	(void)version, (void)flags;
	*function = dlsym(RTLD_DEFAULT, symbol);
	if (status)
		*status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
