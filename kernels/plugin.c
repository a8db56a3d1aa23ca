/* plugin.c: finding and loading the CUDA plugin. See plugin.h. */
#include "kernels/plugin.h"

#include "base/os_program.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN_FILE "librivulet_cuda.so"
#define PLUGIN_ENV  "RIVULET_CUDA_PLUGIN"
#define DRIVER_FILE "libcuda.so.1"

/* The result of the first call, which all later ones return. */
static struct {
	pthread_once_t once;
	const struct backend_plugin *plugin;
	enum rv_err err;
	struct rv_errtext text;
} cuda = {.once = PTHREAD_ONCE_INIT};

/* Places relative to the program's own directory. */
static const char *const places[] = {"", "../lib/", "../lib/rivulet/"};

static bool program_directory(char out[PATH_MAX]) {
	if (!os_program_path(out))
		return false;
	char *slash = strrchr(out, '/');
	if (!slash)
		return false;
	slash[1] = 0;
	return true;
}

/* Finds the driver first: the plugin loads vendor libraries of some 140 MiB, too much just to learn
 * that there is no driver. */
static enum rv_err find_driver(struct rv_errtext *et) {
	if (dlopen(DRIVER_FILE, RTLD_LAZY | RTLD_LOCAL)) /* stays, as the plugin does */
		return RV_OK;
	return rv_fail(et, RV_E_NOTFOUND, "no NVIDIA driver is installed (%s is not there)", DRIVER_FILE);
}

static enum rv_err find(char path[PATH_MAX], struct rv_errtext *et) {
	char dir[PATH_MAX];
	const char *said = getenv(PLUGIN_ENV);
	if (said && said[0]) { /* it may need no driver: the emulated one does not */
		if (snprintf(path, PATH_MAX, "%s", said) < PATH_MAX && access(path, R_OK) == 0)
			return RV_OK;
		return rv_fail(et, RV_E_NOTFOUND, "%s is %s: no such file", PLUGIN_ENV, said);
	}
	bool known = program_directory(dir);
	for (size_t i = 0; known && i < sizeof places / sizeof places[0]; i++)
		if (snprintf(path, PATH_MAX, "%s%s%s", dir, places[i], PLUGIN_FILE) < PATH_MAX && access(path, R_OK) == 0)
			return find_driver(et);
	RV_TRY(find_driver(et)); /* without a GPU nothing is missed */
	return rv_fail(et, RV_E_NOTFOUND,
				   "this build has no CUDA plugin (%s is neither beside the program nor in ../lib; %s may name it)",
				   PLUGIN_FILE, PLUGIN_ENV);
}

static enum rv_err open_at(const char *path, const struct backend_plugin **out, struct rv_errtext *et) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return rv_fail(et, RV_E_UNSUPPORTED, "the CUDA plugin cannot be loaded: %s", dlerror());
	plugin_entry_fn *entry;
	*(void **)&entry = dlsym(library, PLUGIN_SYMBOL);
	const struct backend_plugin *p = entry ? entry(PLUGIN_ABI) : NULL;
	if (p && p->abi == PLUGIN_ABI) {
		*out = p; /* never closed: see plugin.h */
		return RV_OK;
	}
	enum rv_err e = p ? rv_fail(et, RV_E_UNSUPPORTED,
								"%s is of another build: its interface is version %" PRIu32 ", this "
								"program's %" PRIu32 "; build both together",
								path, p->abi, PLUGIN_ABI)
					  : rv_fail(et, RV_E_UNSUPPORTED, "%s is no Rivulet plugin: it lacks %s", path, PLUGIN_SYMBOL);
	(void)dlclose(library);
	return e;
}

static void load(void) {
	char path[PATH_MAX];
	cuda.err = find(path, &cuda.text);
	if (cuda.err == RV_OK)
		cuda.err = open_at(path, &cuda.plugin, &cuda.text);
}

enum rv_err plugin_cuda(const struct backend_plugin **out, struct rv_errtext *et) {
	(void)pthread_once(&cuda.once, load);
	*out = cuda.plugin;
	return cuda.err == RV_OK ? RV_OK : rv_fail(et, cuda.err, "%s", cuda.text.text);
}
