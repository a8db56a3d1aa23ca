/* os_file_linux.c: posix_fallocate(3), sendfile(2), fdatasync(2), pipe2(2). */
#include "base/os_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/sendfile.h>
#include <unistd.h>

int os_file_take_room(int fd, uint64_t bytes) {
	int failed;
	do
		failed = posix_fallocate(fd, 0, (off_t)bytes);
	while (failed == EINTR);
	bool cannot = failed == EOPNOTSUPP || failed == EINVAL || failed == ENOSYS;
	return !cannot ? failed : ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
}

ssize_t os_file_send(int socket, int file, off_t *at, size_t n) {
	return sendfile(socket, file, at, n);
}

int os_file_sync_data(int fd) {
	return fdatasync(fd);
}

int os_file_pipe(int ends[2]) {
	return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}
