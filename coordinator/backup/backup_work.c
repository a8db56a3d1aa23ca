/* backup_work.c: see backup_work.h. */
#include "coordinator/backup/backup_work.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PREFIX[] = ".rivulet-backup-";
enum { TRIES = 8 };

/* The bytes of `path` before its last name. */
static int parent_bytes(const char *path) {
	const char *slash = strrchr(path, '/');
	return slash != NULL ? (int)(slash + 1 - path) : 0;
}

static bool open_dir(const char *path, int *fd) {
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *fd >= 0;
}

/* Takes over `fd`. */
static void remove_all(const char *path, int fd) {
	DIR *d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		return;
	}
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		(void)unlinkat(fd, e->d_name, 0);
	(void)rmdir(path);
	(void)closedir(d); /* and lets go of the lock */
}

static void remove_if_left(const char *path) {
	struct stat st;
	int fd;
	if (!open_dir(path, &fd))
		return;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
		remove_all(path, fd);
	else
		(void)close(fd);
}

static void remove_left(const char *target) {
	char path[RUN_PATH_BYTES + 256];
	int parent = parent_bytes(target);
	(void)snprintf(path, sizeof path, "%.*s.", parent, target);
	DIR *d = opendir(path);
	for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
		if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) == 0) {
			(void)snprintf(path, sizeof path, "%.*s%s", parent, target, e->d_name);
			remove_if_left(path);
		}
	if (d != NULL)
		(void)closedir(d);
}

/* False: another backup took it for one that was left. Where there are no such locks nothing is ever taken so. */
static bool make_own(struct backup_work *w) {
	if (!open_dir(w->dir, &w->fd))
		return false;
	(void)flock(w->fd, LOCK_EX);
	if (access(w->dir, F_OK) == 0)
		return true;
	(void)close(w->fd);
	return false;
}

enum rv_err backup_work_begin(const char *target, struct backup_work *w, struct rv_errtext *et) {
	if ((size_t)snprintf(w->target, sizeof w->target, "%s", target) >= sizeof w->target)
		return rv_fail(et, RV_E_RANGE, "%s: the path is longer than %zu bytes", target, sizeof w->target - 1);
	remove_left(target);
	for (int i = 0; i < TRIES; i++) {
		(void)snprintf(w->dir, sizeof w->dir, "%.*s%sXXXXXX", parent_bytes(target), target, PREFIX);
		if (mkdtemp(w->dir) == NULL)
			return rv_fail_errno(et, errno, "%s: no directory to make it in can be made beside it", target);
		(void)snprintf(w->copy, sizeof w->copy, "%s/copy", w->dir);
		(void)snprintf(w->sealed, sizeof w->sealed, "%s/sealed", w->dir);
		if (make_own(w))
			return RV_OK;
	}
	return rv_fail(et, RV_E_IO, "%s: the directory to make it in is removed again and again", target);
}

enum rv_err backup_work_publish(const struct backup_work *w, struct rv_errtext *et) {
	if (rename(w->sealed, w->target) != 0)
		return rv_fail_errno(et, errno, "%s: cannot be renamed to %s", w->sealed, w->target);
	return rv_file_sync_parent(w->target, et);
}

void backup_work_end(struct backup_work *w) {
	remove_all(w->dir, w->fd);
	w->fd = -1;
}
