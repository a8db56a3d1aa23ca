/* sysfs.h: small files of the kernel, one value each. */
#ifndef RV_WORKER_SENSORS_SYSFS_H
#define RV_WORKER_SENSORS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYSFS_TEXT_BYTES = 64, SYSFS_PATH_BYTES = 512 };

/* Reads the first line of DIR/NAME, without its end. Returns false, with "", if there is none. */
bool sysfs_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]);
/* Reads a decimal number. */
bool sysfs_number(const char *dir, const char *name, int64_t *out);
/* Calls fn with the path of each entry of DIR but those that begin with a dot, in any order.
 * Returns false if there is no such directory. */
bool sysfs_each(const char *dir, void (*fn)(void *ctx, const char *path, const char *name), void *ctx);

#endif
