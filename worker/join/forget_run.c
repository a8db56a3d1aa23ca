/* forget_run.c: see forget_run.h. */
#include "worker/join/forget_run.h"

#include "base/hash.h"
#include "base/hex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 4 }; /* data/HASH/FILE, and given-up-E/FILE */

/* What goes at all, and of that what goes first. */
static const char *const goes[] = {"run.conf",
								   "run.link",
								   "member.conf",
								   "identity.key",
								   "terms.conf",
								   "*.rvs",
								   "*.rvl",
								   "*.rvp",
								   "*.rvm",
								   "*.rvc",
								   "*.rvi",
								   "*.rv?.tmp-*",
								   "snapshot-[0-9]*.part",
								   "*.rv?.damaged",
								   "given-up-[0-9]*",
								   NULL};
enum { MEMBERSHIP = 5 };
/* What the directory of a worker that was started once has; the last stays when it leaves. */
static const char *const marks[] = {"identity.key", "member.conf", "run.link", "allowed.json", NULL};
static const char text_dir[] = "data"; /* DATA/HASH/FILE */

static enum rv_err fault(struct rv_errtext *et, const char *name) {
	return rv_fail_errno(et, errno, "cannot remove %s", name);
}

/* Removes `name` of the directory `fd`, with all that is in it; follows no link. */
static enum rv_err remove_tree(int fd, const char *name, int depth, struct rv_errtext *et) {
	struct stat st;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? RV_OK : fault(et, name);
	if (!S_ISDIR(st.st_mode))
		return unlinkat(fd, name, 0) == 0 || errno == ENOENT ? RV_OK : fault(et, name);
	const int inner = depth < DEPTH_MAX ? openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	DIR *d = inner >= 0 ? fdopendir(inner) : NULL;
	if (!d) {
		const enum rv_err e = fault(et, name);
		if (inner >= 0)
			(void)close(inner);
		return e;
	}
	enum rv_err e = RV_OK;
	for (const struct dirent *f; e == RV_OK && (f = readdir(d));)
		if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
			e = remove_tree(dirfd(d), f->d_name, depth + 1, et);
	(void)closedir(d);
	if (e == RV_OK && unlinkat(fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		e = fault(et, name);
	return e;
}

static bool goes_too(const char *name) {
	for (const char *const *pattern = goes; *pattern; pattern++)
		if (fnmatch(*pattern, name, FNM_PERIOD) == 0)
			return true;
	return false;
}

/* Removes the texts of runs, each in a directory that its hash names; other files in `data` are
 * somebody else's, as where a worker was started in a directory of the person's. */
static enum rv_err forget_texts(int fd, struct rv_errtext *et) {
	uint8_t hash[RV_HASH_BYTES];
	const int inner = openat(fd, text_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = inner >= 0 ? fdopendir(inner) : NULL;
	if (!d) {
		if (inner >= 0)
			(void)close(inner);
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? RV_OK : fault(et, text_dir);
	}
	enum rv_err e = RV_OK;
	for (const struct dirent *f; e == RV_OK && (f = readdir(d));)
		if (rv_hex_decode(f->d_name, hash, sizeof hash))
			e = remove_tree(dirfd(d), f->d_name, 2, et);
	(void)closedir(d);
	if (e == RV_OK && unlinkat(fd, text_dir, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != EEXIST)
		e = fault(et, text_dir);
	return e;
}

enum rv_err forget_run_check(const char *dir, struct rv_errtext *et) {
	char path[PATH_MAX];
	for (const char *const *mark = marks; *mark; mark++) {
		(void)snprintf(path, sizeof path, "%s/%s", dir, *mark);
		if (access(path, F_OK) == 0)
			return RV_OK;
	}
	return rv_fail(et, RV_E_NOTFOUND, "%s is not a worker's directory: nothing is removed; name one with --dir", dir);
}

enum rv_err forget_run(const char *dir, struct rv_errtext *et) {
	DIR *d = opendir(dir);
	if (!d)
		return rv_fail_errno(et, errno, "%s", dir);
	enum rv_err e = RV_OK;
	for (int i = 0; i < MEMBERSHIP && e == RV_OK; i++)
		e = remove_tree(dirfd(d), goes[i], 1, et);
	for (const struct dirent *f; e == RV_OK && (f = readdir(d));)
		if (goes_too(f->d_name))
			e = remove_tree(dirfd(d), f->d_name, 1, et);
	if (e == RV_OK)
		e = forget_texts(dirfd(d), et);
	(void)closedir(d);
	return e;
}
