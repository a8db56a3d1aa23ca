/* plugin.h: backends in a shared library of their own, so that the programs start where the
 * library's own dependencies (a driver, vendor libraries) are missing.
 *
 * Each has an entry in the registry (kernels/plugins.h). The entry's variable of the environment
 * names its path (nothing else is tried then); else it is looked up beside the program, in ../lib
 * and in ../lib/rivulet from there; never in the working directory and not along the loader's
 * search path; and then only if the driver's library can be opened, since loading the plugin takes
 * much memory. It exports one symbol, PLUGIN_SYMBOL, of type plugin_entry_fn. It is opened once,
 * with RTLD_NOW | RTLD_LOCAL, and stays until the process ends: its threads may outlive any use of
 * it. Loading is thread-safe. */
#ifndef RV_KERNELS_PLUGIN_H
#define RV_KERNELS_PLUGIN_H

#include "kernels/backend.h"
#include "kernels/comm_ops.h"
#include "kernels/outer_ops.h"

/* Version of everything that a plugin and a program share: this header and its includes.
 * Incremented by every change. */
#define PLUGIN_ABI    UINT32_C(15)
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
	/* Writes the number of usable devices, at least 1 and at most PLUGIN_DEVICES_MAX.
	 * RV_E_NOTFOUND: none, with the reason (no driver, an old one, no device). */
	enum rv_err (*devices)(int *n, struct rv_errtext *et);
	/* Describes a device. RV_E_UNSUPPORTED: it is too old. */
	enum rv_err (*device)(int index, struct plugin_device *out, struct rv_errtext *et);
	const struct outer_ops *outer; /* NULL: the outer step is the host's */
	const struct comm_ops *comm;   /* NULL: devices exchange through host memory */
	/* Returns one line: each vendor library's place and version, what is missing and how to install
	 * it. The same string every time. */
	const char *(*libraries)(void);
};

/* Returns the plugin's table, always; `abi` is the caller's. The caller compares table->abi with
 * its own and reads nothing else if they differ. */
typedef const struct backend_plugin *plugin_entry_fn(uint32_t abi);

/* Returns the plugin of backend `name`, loaded at the first call. RV_E_NOTFOUND: there is no plugin
 * or no driver, or the backend is none of a plugin; RV_E_UNSUPPORTED: it cannot be loaded, or has
 * another version; the text names the file and the reason. */
enum rv_err plugin_load(const char *name, const struct backend_plugin **out, struct rv_errtext *et);

#endif
