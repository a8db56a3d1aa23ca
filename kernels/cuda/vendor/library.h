/* library.h: finding one shared library by its names in all places, and its functions in it. */
#ifndef RV_CUDA_VENDOR_LIBRARY_H
#define RV_CUDA_VENDOR_LIBRARY_H

#include "base/err.h"
#include "kernels/cuda/vendor/places.h"

#include <stddef.h>

enum { LIBRARY_NAMES_MAX = 4, LIBRARY_NAME_BYTES = 64 };

/* A search for several libraries: folders are listed when the loader finds nothing by itself, and a
 * Python's when the toolkits have nothing either. */
struct library_search {
	struct vendor_environment env;
	bool has_toolkits, has_python; /* in `places` */
	struct place_list places;
};

struct library_symbol {
	const char *name;
	size_t at; /* offset of its pointer in the table of functions, in bytes */
};

struct library {
	const char *title;                                 /* "cuBLASLt" */
	char names[LIBRARY_NAMES_MAX][LIBRARY_NAME_BYTES]; /* in the order of preference; unused ones are "" */
	const struct library_symbol *symbols;              /* up to one whose name is NULL */
};

struct library_found {
	void *handle;
	char path[PLACE_BYTES];
};

struct library_search library_search_with(const struct vendor_environment *env);
/* Loads the first library that has every symbol: the first name in all places, then the second. An
 * unusable file is skipped. RV_E_NOTFOUND: there is none; RV_E_UNSUPPORTED: none is usable, with
 * the reason for the first. Nothing stays loaded then. */
enum rv_err library_load(struct library_search *s, const struct library *l, void *table, struct library_found *out,
						 struct rv_errtext *et);
/* Loads a library without resolving its symbols: `name` beside the file `neighbour` (NULL: none),
 * else as library_load does. A later dlopen of the name alone finds it. */
enum rv_err library_preload(struct library_search *s, const char *neighbour, const char *name, struct rv_errtext *et);

#endif
