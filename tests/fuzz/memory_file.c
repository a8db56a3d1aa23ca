/* memory_file.c: memfd_create(2). */
#include "tests/fuzz/memory_file.h"

#include "base/assert.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int memory_file(const void *data, size_t size, char path[static 64]) {
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	RV_ASSERT(fd >= 0);
	RV_ASSERT(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}
