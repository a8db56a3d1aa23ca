/* plugins.c: the registry of plugins. See plugins.h. */
#include "kernels/plugins.h"

#include <string.h>

#define PLUGIN(name) extern const struct plugin_entry name##_entry;
#include "kernels/plugins.def"
#undef PLUGIN

#define PLUGIN(name) &name##_entry,
const struct plugin_entry *const plugin_entries[] = {
#include "kernels/plugins.def"
	NULL};
#undef PLUGIN

const struct plugin_entry *plugin_entry_of(const char *name) {
	for (int i = 0; plugin_entries[i]; i++)
		if (strcmp(plugin_entries[i]->name, name) == 0)
			return plugin_entries[i];
	return NULL;
}

bool backend_is_gpu(const char *name) {
	return plugin_entry_of(name) != NULL;
}
