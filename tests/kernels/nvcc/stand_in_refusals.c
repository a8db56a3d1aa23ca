/* stand_in_refusals.c: entry points of the driver that cuDNN looks up when it starts, and that need
 * a device: each says that there is none. Without cuda.h, for their arguments do not matter. See
 * stand_in_driver.c. */
enum { NO_DEVICE = 100 };

#pragma GCC visibility push(default)

#define REFUSES(name)                                                                                                  \
	int name(void);                                                                                                    \
	int name(void) {                                                                                                   \
		return NO_DEVICE;                                                                                              \
	}

REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPushCurrent)
REFUSES(cuDeviceGet)
REFUSES(cuGetErrorName)
REFUSES(cuKernelGetAttribute)
REFUSES(cuKernelSetAttribute)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLibraryLoadFromFile)
REFUSES(cuLinkAddData)
REFUSES(cuLinkComplete)
REFUSES(cuLinkCreate)
REFUSES(cuLinkDestroy)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuStreamGetCtx)
