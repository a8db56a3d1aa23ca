/* plugins.h: the registry of plugins: what programs know of a kind of GPU whose plugin they have
 * not loaded, or do not have. An entry and its sizes are linked into all programs; they are in the
 * folder of the plugin, and nothing else names the kind (tests/tree/vendor.cmake). */
#ifndef RV_KERNELS_PLUGINS_H
#define RV_KERNELS_PLUGINS_H

#include "kernels/backend.h"

struct plugin_entry {
	const char *name;         /* of its backend, and in `--device NAME` and `NAME:0,1` */
	const char *file;         /* of the plugin, beside the program or in ../lib */
	const char *environment;  /* the variable that names another file */
	const char *driver;       /* the driver's library, without which the plugin is not loaded */
	const char *maker;        /* for people: "NVIDIA" */
	const char *const *reads; /* variables of the environment with paths that the plugin reads; NULL at the end */
	/* Counts as the plugin's backend_ops.step_memory does, without a device. */
	void (*count_step_memory)(enum dtype act, const struct step_bounds *s, struct step_memory *out);
};

/* NULL at the end. */
extern const struct plugin_entry *const plugin_entries[];
/* Returns the entry of the backend `name`; NULL: it is built in, or there is none. */
const struct plugin_entry *plugin_entry_of(const char *name);

#endif
