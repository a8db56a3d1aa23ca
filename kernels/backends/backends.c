/* backends.c: the registry of backends, and opening one by name. */
#include "kernels/backend.h"

#include "base/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/plugin.h"
#include "kernels/plugins.h"
#include "kernels/ref/ref.h"

#include <stdio.h>
#include <string.h>

enum { BACKEND_THREADS_MAX = 256 };

const struct backend_ops *const backend_registry[] = {&cpu_ops, &ref_ops, NULL};

struct names {
	char text[128];
	size_t used;
};

static void add_name(struct names *l, const char *name) {
	const size_t room = sizeof l->text - l->used;
	const int n = snprintf(l->text + l->used, room, "%s%s", l->used ? ", " : "", name);
	RV_ASSERT(n > 0 && (size_t)n < room);
	l->used += (size_t)n;
}

static enum rv_err fail_unknown(const char *name, struct rv_errtext *et) {
	struct names names = {.used = 0};
	for (int i = 0; backend_registry[i]; i++)
		add_name(&names, backend_registry[i]->name);
	for (int i = 0; plugin_entries[i]; i++)
		add_name(&names, plugin_entries[i]->name);
	return rv_fail(et, RV_E_NOTFOUND, "backend \"%s\": unknown; one of %s", name, names.text);
}

enum rv_err backend_find(const char *name, const struct backend_ops **out, struct rv_errtext *et) {
	const struct backend_plugin *plugin;
	*out = NULL;
	for (int i = 0; backend_registry[i]; i++)
		if (strcmp(backend_registry[i]->name, name) == 0) {
			*out = backend_registry[i];
			return RV_OK;
		}
	if (!backend_is_gpu(name))
		return fail_unknown(name, et);
	RV_TRY(plugin_load(name, &plugin, et));
	*out = plugin->ops;
	return RV_OK;
}

enum rv_err backend_step_memory(const char *name, enum dtype act, const struct step_bounds *s, struct step_memory *out,
								struct rv_errtext *et) {
	const struct backend_ops *ops;
	const struct plugin_entry *entry = plugin_entry_of(name);
	*out = (struct step_memory){.n = 0};
	enum rv_err e = backend_find(name, &ops, entry ? NULL : et);
	if (e == RV_OK && ops->step_memory)
		ops->step_memory(act, s, out);
	if (e == RV_OK || !entry)
		return e;
	entry->count_step_memory(act, s, out);
	return RV_OK;
}

enum rv_err backend_open(const char *name, const struct backend_options *opt, struct backend **out,
						 struct rv_errtext *et) {
	const struct backend_ops *ops;
	*out = NULL;
	if (opt->threads < 0 || opt->threads > BACKEND_THREADS_MAX)
		return rv_fail(et, RV_E_RANGE, "threads = %d: must be 1 to %d, or 0 for all processors", opt->threads,
					   BACKEND_THREADS_MAX);
	RV_TRY(backend_find(name, &ops, et));
	return ops->open(opt, out, et);
}

enum dtype backend_faster_dtype(const char *name, const char *isa) {
	if (backend_is_gpu(name))
		return DTYPE_BF16;
	return strcmp(name, cpu_ops.name) == 0 && cpu_isa_multiplies_bf16(isa) ? DTYPE_BF16 : DTYPE_F32;
}

void backend_close(struct backend *be) {
	if (be)
		be->ops->close(be);
}
