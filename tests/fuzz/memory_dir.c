/* memory_dir.c: /dev/shm. */
#include "tests/fuzz/memory_dir.h"

#include "base/assert.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 8, NAME_BYTES = 32 };

static char dir[] = "/dev/shm/rivulet-fuzz-XXXXXX";
static char paths[FILES_MAX][sizeof dir + NAME_BYTES];
static int n_paths;

static void remove_all(void) {
	for (int i = 0; i < n_paths; i++)
		(void)unlink(paths[i]);
	(void)rmdir(dir);
}

const char *memory_dir(void) {
	static bool made;
	if (!made) {
		RV_ASSERT(mkdtemp(dir) && atexit(remove_all) == 0);
		made = true;
	}
	return dir;
}

const char *memory_dir_path(const char *name) {
	size_t at = strlen(memory_dir()) + 1;
	for (int i = 0; i < n_paths; i++)
		if (strcmp(paths[i] + at, name) == 0)
			return paths[i];
	RV_ASSERT(n_paths < FILES_MAX && strlen(name) < NAME_BYTES);
	(void)snprintf(paths[n_paths], sizeof paths[0], "%s/%s", dir, name);
	return paths[n_paths++];
}

/* Written over what was there: its pages are used again. */
const char *memory_dir_put(const char *name, const void *data, size_t n) {
	const char *path = memory_dir_path(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	RV_ASSERT(fd >= 0);
	RV_ASSERT(write(fd, data, n) == (ssize_t)n && ftruncate(fd, (off_t)n) == 0);
	RV_ASSERT(close(fd) == 0);
	return path;
}
