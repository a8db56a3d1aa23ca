/* library.c: see library.h. */
#include "kernels/cuda/vendor/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A name, tried in place after place. */
struct attempt {
	const struct library *library;
	const char *name;
	void *table;
	struct library_found *out;
	struct rv_errtext unusable; /* of the first file that exists and cannot be used; "": none */
};

struct library_search library_search_with(const struct vendor_environment *env) {
	return (struct library_search){.env = *env};
}

static void note(struct attempt *a, const char *path, const char *why) {
	if (!a->unusable.text[0])
		(void)rv_fail(&a->unusable, RV_E_UNSUPPORTED, "%s%s%s", path, path[0] ? ": " : "", why);
}

/* Fills the table. Returns the symbol that is missing, or NULL. */
static const char *resolve(void *handle, const struct library_symbol *symbols, void *table) {
	for (; symbols->name; symbols++) {
		void *function = dlsym(handle, symbols->name);
		if (!function)
			return symbols->name;
		memcpy((char *)table + symbols->at, &function, sizeof function);
	}
	return NULL;
}

/* Writes the path where the loader found it. */
static void remember_path(struct library_found *f, const char *fallback) {
	struct link_map *map = NULL;
	bool known = dlinfo(f->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0];
	(void)snprintf(f->path, sizeof f->path, "%s", known ? map->l_name : fallback);
}

/* Returns true if the loader's message is only that the file does not exist, which begins with its
 * name. */
static bool is_absence(const char *said, const char *name) {
	return strncmp(said, name, strlen(name)) == 0 && strstr(said, "cannot open shared object file") != NULL;
}

static bool try_file(struct attempt *a, const char *file) {
	char missing[128];
	a->out->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!a->out->handle) {
		const char *said = dlerror();
		if (!is_absence(said, a->name))
			note(a, strstr(said, file) ? "" : file, said);
		return false;
	}
	remember_path(a->out, file);
	const char *symbol = resolve(a->out->handle, a->library->symbols, a->table);
	if (!symbol)
		return true;
	(void)snprintf(missing, sizeof missing, "it lacks %s", symbol);
	note(a, a->out->path, missing);
	(void)dlclose(a->out->handle);
	*a->out = (struct library_found){.handle = NULL};
	return false;
}

static bool try_folders(struct attempt *a, const struct place_list *places, int from) {
	char file[PLACE_BYTES + LIBRARY_NAME_BYTES + 1];
	for (int i = from; i < places->n; i++) {
		(void)snprintf(file, sizeof file, "%s/%s", places->path[i], a->name);
		if (access(file, F_OK) == 0 && try_file(a, file))
			return true;
	}
	return false;
}

/* Tries the loader's own search, then every place; expensive ones only if needed. */
static bool try_everywhere(struct library_search *s, struct attempt *a) {
	if (!s->env.skip_loader && try_file(a, a->name))
		return true;
	if (!s->has_toolkits)
		places_add_toolkits(&s->places, &s->env);
	s->has_toolkits = true;
	if (try_folders(a, &s->places, 0))
		return true;
	int tried = s->places.n;
	if (!s->has_python)
		places_add_python(&s->places, &s->env);
	s->has_python = true;
	return try_folders(a, &s->places, tried);
}

enum rv_err library_load(struct library_search *s, const struct library *l, void *table, struct library_found *out,
						 struct rv_errtext *et) {
	struct attempt a = {.library = l, .table = table, .out = out};
	*out = (struct library_found){.handle = NULL};
	for (int i = 0; i < LIBRARY_NAMES_MAX && l->names[i][0]; i++) {
		a.name = l->names[i];
		if (try_everywhere(s, &a))
			return RV_OK;
	}
	if (a.unusable.text[0])
		return rv_fail(et, RV_E_UNSUPPORTED, "%s cannot be used: %s", l->title, a.unusable.text);
	return rv_fail(et, RV_E_NOTFOUND, "no %s: %s is neither where the loader looks nor in %d other folders", l->title,
				   l->names[0], s->places.n);
}

enum rv_err library_preload(struct library_search *s, const char *neighbour, const char *name, struct rv_errtext *et) {
	static const struct library_symbol none = {NULL, 0};
	struct library l = {.title = name, .symbols = &none};
	struct library_found found;
	char file[PLACE_BYTES + LIBRARY_NAME_BYTES + 1];
	const char *slash = neighbour ? strrchr(neighbour, '/') : NULL;
	if (slash) {
		(void)snprintf(file, sizeof file, "%.*s/%s", (int)(slash - neighbour), neighbour, name);
		if (access(file, F_OK) == 0 && dlopen(file, RTLD_NOW | RTLD_LOCAL))
			return RV_OK;
	}
	(void)snprintf(l.names[0], sizeof l.names[0], "%s", name);
	return library_load(s, &l, NULL, &found, et);
}
