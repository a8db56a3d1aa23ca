/* plugin.c: finds and loads plugins. See plugin.h. */
#include "kernels/plugin.h"

#include "base/os_program.h"
#include "kernels/plugins.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN(name) +1
enum {
	PLUGINS = 0
#include "kernels/plugins.def"
};
#undef PLUGIN

/* The result of the first call for each entry, which all later ones return. */
static struct outcome {
	bool tried;
	const struct backend_plugin *plugin;
	enum rv_err err;
	struct rv_errtext text;
} outcomes[PLUGINS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

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
static enum rv_err find_driver(const struct plugin_entry *entry, struct rv_errtext *et) {
	if (dlopen(entry->driver, RTLD_LAZY | RTLD_LOCAL)) /* stays, as the plugin does */
		return RV_OK;
	return rv_fail(et, RV_E_NOTFOUND, "no %s driver is installed (%s is not there)", entry->maker, entry->driver);
}

static enum rv_err find(const struct plugin_entry *entry, char path[PATH_MAX], struct rv_errtext *et) {
	char dir[PATH_MAX];
	const char *said = getenv(entry->environment);
	if (said && said[0]) { /* it may need no driver: the emulated one does not */
		if (snprintf(path, PATH_MAX, "%s", said) < PATH_MAX && access(path, R_OK) == 0)
			return RV_OK;
		return rv_fail(et, RV_E_NOTFOUND, "%s is %s: no such file", entry->environment, said);
	}
	bool known = program_directory(dir);
	for (size_t i = 0; known && i < sizeof places / sizeof places[0]; i++)
		if (snprintf(path, PATH_MAX, "%s%s%s", dir, places[i], entry->file) < PATH_MAX && access(path, R_OK) == 0)
			return find_driver(entry, et);
	RV_TRY(find_driver(entry, et)); /* without a GPU nothing is missed */
	return rv_fail(
		et, RV_E_NOTFOUND,
		"this build has no plugin for %s GPUs (%s is neither beside the program nor in ../lib; %s may name it)",
		entry->maker, entry->file, entry->environment);
}

/* Checks that the table `p` in the file at `path` is this program's, and of that kind. */
static enum rv_err check(const struct plugin_entry *entry, const char *path, const struct backend_plugin *p,
						 struct rv_errtext *et) {
	if (!p)
		return rv_fail(et, RV_E_UNSUPPORTED, "%s is no Rivulet plugin: it lacks %s", path, PLUGIN_SYMBOL);
	if (p->abi != PLUGIN_ABI)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%s is of another build: its interface is version %" PRIu32 ", this program's %" PRIu32
					   "; build both together",
					   path, p->abi, PLUGIN_ABI);
	if (strcmp(p->ops->name, entry->name) != 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "%s is the plugin of %s, not of %s", path, p->ops->name, entry->name);
	return RV_OK;
}

static enum rv_err open_at(const struct plugin_entry *entry, const char *path, const struct backend_plugin **out,
						   struct rv_errtext *et) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return rv_fail(et, RV_E_UNSUPPORTED, "the plugin for %s GPUs cannot be loaded: %s", entry->maker, dlerror());
	plugin_entry_fn *table;
	*(void **)&table = dlsym(library, PLUGIN_SYMBOL);
	const struct backend_plugin *p = table ? table(PLUGIN_ABI) : NULL;
	const enum rv_err e = check(entry, path, p, et);
	if (e == RV_OK)
		*out = p; /* never closed: see plugin.h */
	else
		(void)dlclose(library);
	return e;
}

static void try_once(const struct plugin_entry *entry, struct outcome *o) {
	char path[PATH_MAX];
	if (o->tried)
		return;
	o->tried = true;
	o->err = find(entry, path, &o->text);
	if (o->err == RV_OK)
		o->err = open_at(entry, path, &o->plugin, &o->text);
}

enum rv_err plugin_load(const char *name, const struct backend_plugin **out, struct rv_errtext *et) {
	*out = NULL;
	for (int i = 0; plugin_entries[i]; i++) {
		struct outcome *o = &outcomes[i];
		if (strcmp(plugin_entries[i]->name, name) != 0)
			continue;
		(void)pthread_mutex_lock(&mutex);
		try_once(plugin_entries[i], o);
		(void)pthread_mutex_unlock(&mutex);
		*out = o->plugin;
		return o->err == RV_OK ? RV_OK : rv_fail(et, o->err, "%s", o->text.text);
	}
	return rv_fail(et, RV_E_NOTFOUND, "backend \"%s\" comes with no plugin", name);
}
