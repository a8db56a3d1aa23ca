/* dynamic.h: libraries that are used if the computer has them, and never linked. */
#ifndef RV_WORKER_SENSORS_DYNAMIC_H
#define RV_WORKER_SENSORS_DYNAMIC_H

#include <stdbool.h>
#include <stddef.h>

struct dynamic_symbol {
	const char *name;
	size_t at; /* offset of its pointer in the table of functions, in bytes */
};

/* Opens the first of `names` (up to NULL) that has all `symbols` (up to one without a name), and
 * writes their addresses into `table`. It stays open until the process ends. Returns false if there
 * is none. */
bool dynamic_open(const char *const *names, const struct dynamic_symbol *symbols, void *table);

#endif
