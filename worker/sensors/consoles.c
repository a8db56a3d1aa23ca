/* consoles.c: a terminal's access time is that of the latest input that a program read, as w(1)
 * takes it. */
#include "worker/sensors/consoles.h"

#include "worker/sensors/sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { US_PER_S = 1000000 };

struct latest {
	int64_t input_s; /* since 1970; 0: none yet */
	const char *prefix;
};

static void take(void *ctx, const char *path, const char *name) {
	struct latest *l = ctx;
	const size_t n = strlen(l->prefix);
	struct stat st;
	if (strncmp(name, l->prefix, n) != 0 || name[n] < '0' || name[n] > '9' || stat(path, &st) != 0)
		return; /* ttyS0 is a line, ptmx no terminal */
	if (st.st_atime > l->input_s)
		l->input_s = st.st_atime;
}

int64_t consoles_idle_s(const char *root, int64_t now_wall_us) {
	static const char *const places[][2] = {{"/dev", "tty"}, {"/dev/pts", ""}};
	struct latest l = {0, NULL};
	char dir[SYSFS_PATH_BYTES];
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		l.prefix = places[i][1];
		(void)snprintf(dir, sizeof dir, "%s%s", root, places[i][0]);
		(void)sysfs_each(dir, take, &l);
	}
	const int64_t idle_s = now_wall_us / US_PER_S - l.input_s;
	return l.input_s == 0 ? -1 : idle_s > 0 ? idle_s : 0;
}

static void note_socket(void *ctx, const char *path, const char *name) {
	(void)path;
	bool *found = ctx;
	*found = *found || (name[0] == 'X' && name[1] >= '0' && name[1] <= '9') || strncmp(name, "wayland-", 8) == 0;
}

static void note_user(void *ctx, const char *path, const char *name) {
	(void)name;
	(void)sysfs_each(path, note_socket, ctx);
}

bool consoles_has_display(const char *root) {
	char dir[SYSFS_PATH_BYTES];
	bool found = getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
	(void)snprintf(dir, sizeof dir, "%s/tmp/.X11-unix", root);
	(void)sysfs_each(dir, note_socket, &found);
	(void)snprintf(dir, sizeof dir, "%s/run/user", root);
	(void)sysfs_each(dir, note_user, &found);
	return found;
}
