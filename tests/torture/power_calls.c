/* power_calls.c: what changes a disk, counted (power.h). These stand before the C library's, for
 * our objects and for the libraries that are linked with them. */
#include "tests/torture/power.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(result, name, parameters, ...)                                                                            \
	__attribute__((visibility("default"))) result name parameters {                                                    \
		power_changes();                                                                                               \
		return (result)syscall(__VA_ARGS__);                                                                           \
	}

CALL(ssize_t, write, (int fd, const void *p, size_t n), SYS_write, fd, p, n)
CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), SYS_pwrite64, fd, p, n, at)
CALL(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), SYS_pwrite64, fd, p, n, at)
CALL(int, ftruncate, (int fd, off_t n), SYS_ftruncate, fd, n)
CALL(int, ftruncate64, (int fd, off64_t n), SYS_ftruncate, fd, n)
CALL(int, rename, (const char *from, const char *to), SYS_renameat, AT_FDCWD, from, AT_FDCWD, to)
CALL(int, unlink, (const char *path), SYS_unlinkat, AT_FDCWD, path, 0)

static int sync_it(int fd, long number) {
	power_changes();
	int rc = (int)syscall(number, fd);
	if (rc == 0)
		power_synced(fd);
	return rc;
}

__attribute__((visibility("default"))) int fsync(int fd) {
	return sync_it(fd, SYS_fsync);
}

__attribute__((visibility("default"))) int fdatasync(int fd) {
	return sync_it(fd, SYS_fdatasync);
}
