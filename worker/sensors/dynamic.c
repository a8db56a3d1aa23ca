/* dynamic.c: see dynamic.h. */
#include "worker/sensors/dynamic.h"

#include <dlfcn.h>
#include <string.h>

static bool take(void *handle, const struct dynamic_symbol *symbols, void *table) {
	for (const struct dynamic_symbol *s = symbols; s->name; s++) {
		void *address = dlsym(handle, s->name);
		if (!address)
			return false;
		memcpy((char *)table + s->at, &address, sizeof address);
	}
	return true;
}

bool dynamic_open(const char *const *names, const struct dynamic_symbol *symbols, void *table) {
	for (; *names; names++) {
		void *handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
		if (handle && take(handle, symbols, table))
			return true;
		if (handle)
			(void)dlclose(handle);
	}
	return false;
}
