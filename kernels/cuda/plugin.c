/* plugin.c: the plugin's table and its one exported symbol: see kernels/plugin.h. */
#include "kernels/plugin.h"

#include "kernels/cuda/comm_nccl.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_outer.h"
#include "kernels/cuda/load_code.h"
#include "kernels/cuda/vendor/vendor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_MAJOR = 8 }; /* bf16 in tensor cores */

/* Returns true if there is a driver's library, or its device files, whatever its version. */
static bool has_driver(void) {
	int version = 0;
	if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
		return true;
	return access("/dev/nvidiactl", F_OK) == 0 || access("/proc/driver/nvidia/version", F_OK) == 0;
}

static enum rv_err plugin_devices(int *n, struct rv_errtext *et) {
	*n = 0;
	cudaError_t e = cudaGetDeviceCount(n);
	(void)cudaGetLastError();
	if (e == cudaSuccess && *n > 0) {
		*n = *n < PLUGIN_DEVICES_MAX ? *n : PLUGIN_DEVICES_MAX;
		return RV_OK;
	}
	if (e == cudaSuccess || has_driver())
		return rv_fail(et, RV_E_NOTFOUND, "no usable GPU: %s",
					   e == cudaSuccess ? "none is visible" : cudaGetErrorString(e));
	return rv_fail(et, RV_E_NOTFOUND, "no NVIDIA driver is loaded");
}

static enum rv_err look_at(int index, struct plugin_device *out, struct rv_errtext *et) {
	struct cudaDeviceProp prop;
	*out = (struct plugin_device){.major = 0};
	cudaError_t e = cudaGetDeviceProperties(&prop, index);
	if (e == cudaSuccess)
		e = cudaSetDevice(index);
	if (e == cudaSuccess)
		e = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
	if (e == cudaSuccess)
		e = cudaMemGetInfo(&out->free_bytes, &out->total_bytes);
	if (e != cudaSuccess)
		return rv_fail(et, RV_E_UNSUPPORTED, "GPU %d: %s", index, cudaGetErrorString(e));
	(void)snprintf(out->name, sizeof out->name, "%.*s", PLUGIN_DEVICE_NAME_BYTES - 1, prop.name);
	out->major = prop.major;
	out->minor = prop.minor;
	if (prop.major < LEAST_MAJOR)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "GPU %d, %s, is older than those that can train here (NVIDIA's compute capability %d.%d, at "
					   "least %d.0 is needed): a GeForce RTX of the 30 series or newer, an A100 or newer",
					   index, out->name, prop.major, prop.minor, LEAST_MAJOR);
	return RV_OK;
}

/* A look at a card that nobody uses leaves nothing there. */
static enum rv_err plugin_device(int index, struct plugin_device *out, struct rv_errtext *et) {
	if (index < 0 || index >= PLUGIN_DEVICES_MAX)
		return rv_fail(et, RV_E_UNSUPPORTED, "GPU %d: they are numbered from 0 to %d", index, PLUGIN_DEVICES_MAX - 1);
	cuda_hold_device(index);
	const enum rv_err e = look_at(index, out, et);
	cuda_let_go_device(index);
	return e;
}

__attribute__((visibility("default"))) const struct backend_plugin *rivulet_plugin(uint32_t abi);

const struct backend_plugin *rivulet_plugin(uint32_t abi) {
	static const struct backend_plugin plugin = {
		.abi = PLUGIN_ABI,
		.version = RV_VERSION,
		.ops = &cuda_ops,
		.devices = plugin_devices,
		.device = plugin_device,
		.outer = &cuda_outer_ops,
		.comm = COMM_NCCL_OPS,
		.libraries = vendor_describe,
	};
	(void)abi; /* the caller compares */
	return &plugin;
}
