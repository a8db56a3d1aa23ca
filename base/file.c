/* file.c: files that are either whole or not there; directories and their locks. */
#include "base/file.h"

#include "base/assert.h"
#include "base/failpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t rv_read_at(int fd, void *out, size_t n, uint64_t at) {
	size_t got = 0;
	while (got < n) {
		ssize_t k = pread(fd, (uint8_t *)out + got, n - got, (off_t)(at + got));
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ssize_t)got;
}

/* Writes at *at, or at the descriptor's position if `at` is NULL. */
static bool write_whole(int fd, const uint8_t *data, size_t n, const uint64_t *at) {
	for (size_t done = 0; done < n;) {
		ssize_t k = at ? pwrite(fd, data + done, n - done, (off_t)(*at + done)) : write(fd, data + done, n - done);
		if (k < 0 && errno != EINTR)
			return false;
		done += k > 0 ? (size_t)k : 0;
	}
	return true;
}

bool rv_write_at(int fd, const void *data, size_t n, uint64_t at) {
	return write_whole(fd, data, n, &at);
}

bool rv_write_all(int fd, const void *data, size_t n) {
	return write_whole(fd, data, n, NULL);
}

/* Returns the size to expect; refuses one over the limit, and files without a size (a directory, a
 * pipe). */
static enum rv_err regular_size(int fd, const char *path, size_t max_bytes, size_t *out, struct rv_errtext *et) {
	struct stat st;
	if (fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s: cannot stat", path);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "%s: not a regular file", path);
	if ((uintmax_t)st.st_size > max_bytes)
		return rv_fail(et, RV_E_RANGE, "%s: %jd bytes, the limit is %zu", path, (intmax_t)st.st_size, max_bytes);
	*out = (size_t)st.st_size;
	return RV_OK;
}

enum rv_err rv_file_read(const char *path, size_t max_bytes, uint8_t **out, size_t *out_bytes, struct rv_errtext *et) {
	*out = NULL;
	*out_bytes = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	uint8_t *data = NULL;
	size_t size = 0;
	enum rv_err e = regular_size(fd, path, max_bytes, &size, et);
	if (e != RV_OK)
		goto out;
	data = malloc(size + 1);
	if (!data) {
		e = rv_fail(et, RV_E_NOMEM, "%s: no memory for its %zu bytes", path, size);
		goto out;
	}
	ssize_t got = rv_read_at(fd, data, size, 0);
	if (got < 0) {
		e = rv_fail_errno(et, errno, "%s: cannot read", path);
		goto out;
	}
	data[got] = '\0';
	*out = data;
	*out_bytes = (size_t)got;
	data = NULL;
out:
	free(data);
	(void)close(fd);
	return e;
}

enum rv_err rv_file_writer_begin(struct rv_file_writer *w, const char *path, mode_t mode, struct rv_errtext *et) {
	w->fd = -1;
	if (strlen(path) >= sizeof w->path)
		return rv_fail(et, RV_E_RANGE, "%s: path is longer than %zu bytes", path, sizeof w->path - 1);
	(void)snprintf(w->path, sizeof w->path, "%s", path);
	(void)snprintf(w->tmp, sizeof w->tmp, "%s.tmp-XXXXXX", path);
	w->fd = mkostemp(w->tmp, O_CLOEXEC);
	if (w->fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot create a file beside it", path);
	if (fchmod(w->fd, mode) != 0) {
		enum rv_err e = rv_fail_errno(et, errno, "%s: cannot set mode %o", w->tmp, (unsigned)mode);
		rv_file_writer_abandon(w);
		return e;
	}
	enum rv_err e = RV_FAILPOINT_FILE(path, "begin", et);
	if (e != RV_OK)
		rv_file_writer_abandon(w);
	return e;
}

enum rv_err rv_file_writer_write(struct rv_file_writer *w, const void *data, size_t n, struct rv_errtext *et) {
	RV_ASSERT(w->fd >= 0);
	return rv_write_all(w->fd, data, n) ? RV_OK : rv_fail_errno(et, errno, "%s: cannot write", w->tmp);
}

enum rv_err rv_file_writer_patch(struct rv_file_writer *w, const void *data, size_t n, uint64_t at,
								 struct rv_errtext *et) {
	RV_ASSERT(w->fd >= 0);
	return rv_write_at(w->fd, data, n, at) ? RV_OK : rv_fail_errno(et, errno, "%s: cannot write", w->tmp);
}

enum rv_err rv_file_sync_parent(const char *path, struct rv_errtext *et) {
	char dir[512];
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) : 0;
	(void)snprintf(dir, sizeof dir, "%.*s", n ? n : 1, n ? path : slash ? "/" : ".");
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open the directory", dir);
	enum rv_err e = RV_OK;
	if (fsync(fd) != 0 && errno != EINVAL) /* EINVAL: a file system that needs no directory sync */
		e = rv_fail_errno(et, errno, "%s: cannot fsync the directory", dir);
	(void)close(fd);
	return e;
}

enum rv_err rv_file_writer_commit(struct rv_file_writer *w, struct rv_errtext *et) {
	RV_ASSERT(w->fd >= 0);
	enum rv_err e = RV_FAILPOINT_FILE(w->path, "before-fsync", et);
	if (e != RV_OK)
		goto out;
	if (fsync(w->fd) != 0) {
		e = rv_fail_errno(et, errno, "%s: cannot fsync", w->tmp);
		goto out;
	}
	int fd = w->fd;
	w->fd = -1;
	if (close(fd) != 0) { /* NFS reports a full disk here */
		e = rv_fail_errno(et, errno, "%s: cannot close", w->tmp);
		goto out;
	}
	e = RV_FAILPOINT_FILE(w->path, "after-fsync", et);
	if (e != RV_OK)
		goto out;
	if (rename(w->tmp, w->path) != 0) {
		e = rv_fail_errno(et, errno, "%s: cannot rename to %s", w->tmp, w->path);
		goto out;
	}
	w->tmp[0] = '\0';
	RV_TRY(RV_FAILPOINT_FILE(w->path, "renamed", et));
	return rv_file_sync_parent(w->path, et);
out:
	rv_file_writer_abandon(w);
	return e;
}

void rv_file_writer_abandon(struct rv_file_writer *w) {
	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = -1;
	if (w->tmp[0])
		(void)unlink(w->tmp);
	w->tmp[0] = '\0';
}

enum rv_err rv_file_writer_end(struct rv_file_writer *w, enum rv_err e, struct rv_errtext *et) {
	if (e == RV_OK)
		return rv_file_writer_commit(w, et);
	rv_file_writer_abandon(w);
	return e;
}

enum rv_err rv_file_write_atomic(const char *path, const void *data, size_t n, mode_t mode, struct rv_errtext *et) {
	struct rv_file_writer w;
	RV_TRY(rv_file_writer_begin(&w, path, mode, et));
	return rv_file_writer_end(&w, rv_file_writer_write(&w, data, n, et), et);
}

static enum rv_err make_one_dir(const char *path, mode_t mode, struct rv_errtext *et) {
	if (mkdir(path, mode) == 0)
		return RV_OK;
	int errno_mkdir = errno;
	struct stat st;
	if (errno_mkdir != EEXIST || stat(path, &st) != 0)
		return rv_fail_errno(et, errno_mkdir, "%s: cannot make the directory", path);
	if (!S_ISDIR(st.st_mode))
		return rv_fail(et, RV_E_IO, "%s: exists and is not a directory", path);
	return RV_OK;
}

enum rv_err rv_dir_make(const char *path, mode_t mode, struct rv_errtext *et) {
	char part[512];
	size_t n = strlen(path);
	if (n == 0)
		return rv_fail(et, RV_E_INVALID, "cannot make a directory with an empty name");
	if (n >= sizeof part)
		return rv_fail(et, RV_E_RANGE, "%s: path is longer than %zu bytes", path, sizeof part - 1);
	memcpy(part, path, n + 1);
	for (size_t i = 1; i < n; i++) {
		if (part[i] != '/')
			continue;
		part[i] = '\0';
		enum rv_err e = make_one_dir(part, mode, et);
		part[i] = '/';
		RV_TRY(e);
	}
	return make_one_dir(part, mode, et);
}

enum rv_err rv_dir_lock(const char *dir, int *out_fd, struct rv_errtext *et) {
	char path[512];
	*out_fd = -1;
	if ((size_t)snprintf(path, sizeof path, "%s/lock", dir) >= sizeof path)
		return rv_fail(et, RV_E_RANGE, "%s: path is longer than %zu bytes", dir, sizeof path - sizeof "/lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open the lock file", path);
	char pid[32] = {0};
	enum rv_err e;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK) {
			e = rv_fail_errno(et, errno, "%s: cannot lock", path);
			goto out;
		}
		ssize_t n = rv_read_at(fd, pid, sizeof pid - 1, 0);
		pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
		e = rv_fail(et, RV_E_BUSY, "%s: in use by process %s; stop it, or choose another directory", dir,
					pid[0] ? pid : "(unknown)");
		goto out;
	}
	int len = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)len, 0) != len) {
		e = rv_fail_errno(et, errno, "%s: cannot write the process id", path);
		goto out;
	}
	*out_fd = fd;
	return RV_OK;
out:
	(void)close(fd);
	return e;
}

void rv_dir_unlock(int fd) {
	if (fd >= 0)
		(void)close(fd);
}
