/* sysfs.c: see sysfs.h. */
#include "worker/sensors/sysfs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool sysfs_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]) {
	char path[SYSFS_PATH_BYTES];
	out[0] = '\0';
	const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	const bool ok = fgets(out, SYSFS_TEXT_BYTES, f) != NULL; /* a driver may refuse to be read */
	(void)fclose(f);
	out[ok ? strcspn(out, "\n") : 0] = '\0';
	return ok;
}

bool sysfs_number(const char *dir, const char *name, int64_t *out) {
	char text[SYSFS_TEXT_BYTES];
	return sysfs_text(dir, name, text) && sscanf(text, "%" SCNd64, out) == 1;
}

bool sysfs_each(const char *dir, void (*fn)(void *ctx, const char *path, const char *name), void *ctx) {
	char path[SYSFS_PATH_BYTES];
	DIR *d = opendir(dir);
	if (!d)
		return false;
	for (const struct dirent *e; (e = readdir(d));) {
		const int n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && n > 0 && n < (int)sizeof path)
			fn(ctx, path, e->d_name);
	}
	(void)closedir(d);
	return true;
}
