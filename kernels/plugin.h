/* plugin.h: backends that live in a shared library of their own, so that the programs start where the library's own
 * dependencies (a driver, vendor libraries) are missing.
 *
 * The one there is: librivulet_cuda.so. It is looked for where RIVULET_CUDA_PLUGIN says (a path; nothing else is tried
 * then), else beside the program, in ../lib and in ../lib/rivulet from there; never in the working
 * directory and not along the loader's search path; and then only where the driver's library, libcuda.so.1, can be
 * opened, since loading the plugin takes much memory. It exports one symbol, PLUGIN_SYMBOL, of type
 * plugin_entry_fn. It is opened once, with RTLD_NOW | RTLD_LOCAL, and stays until the process ends: its threads may
 * outlive any use of it. Loading is thread-safe.
 */
#ifndef RV_KERNELS_PLUGIN_H
#define RV_KERNELS_PLUGIN_H

#include "kernels/backend.h"
#include "kernels/comm_ops.h"
#include "kernels/outer_ops.h"

/* Of everything that a plugin and a program share: this header and what it includes. Counted up with every change. */
#define PLUGIN_ABI    UINT32_C(5)
#define PLUGIN_SYMBOL "rivulet_plugin"

enum { PLUGIN_DEVICE_NAME_BYTES = 128, PLUGIN_DEVICES_MAX = 16 };

struct plugin_device {
	char name[PLUGIN_DEVICE_NAME_BYTES]; /* "NVIDIA H200" */
	int major, minor;                    /* compute capability */
	size_t total_bytes, free_bytes;      /* of its memory, now */
};

struct backend_plugin {
	uint32_t abi; /* PLUGIN_ABI of the build; stays first */
	const char *version;
	const struct backend_ops *ops;
	/* How many devices can be used (at most PLUGIN_DEVICES_MAX), 1 or more. RV_E_NOTFOUND: none, the text says why (no
	 * driver, an old one, no device). */
	enum rv_err (*devices)(int *n, struct rv_errtext *et);
	/* RV_E_UNSUPPORTED: it is there, but too old. */
	enum rv_err (*device)(int index, struct plugin_device *out, struct rv_errtext *et);
	const struct outer_ops *outer; /* NULL: the outer step is the host's */
	const struct comm_ops *comm;   /* NULL: devices exchange through host memory */
	/* Returns one line: which of the vendor's libraries was found where in which version, what is missing and how to
	 * install it. The same string every time. */
	const char *(*libraries)(void);
};

/* Always returns the plugin's table; `abi` is the caller's, for the plugin to know whom it serves. The caller compares
 * table->abi with its own and looks at nothing else when they differ. */
typedef const struct backend_plugin *plugin_entry_fn(uint32_t abi);

/* The CUDA plugin, loaded at the first call. RV_E_NOTFOUND: it is nowhere, or there is no driver; RV_E_UNSUPPORTED: it
 * cannot be loaded, or is of another version; the text says which file and why. */
enum rv_err plugin_cuda(const struct backend_plugin **out, struct rv_errtext *et);

#endif
