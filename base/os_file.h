/* os_file.h: what systems do with files in ways of their own. Blocks as the file does. */
#ifndef RV_BASE_OS_FILE_H
#define RV_BASE_OS_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Gives the open file `bytes` of length, and takes the room for them on the disk. If the file
 * system cannot promise room, the file gets its length, and room shows as it is written. Returns 0,
 * or an errno (ENOSPC). */
int os_file_take_room(int fd, uint64_t bytes);
/* Sends up to `n` bytes of `file` from *at on to a socket, and moves *at. Returns the bytes sent, 0
 * at the file's end, or -1 with errno (EAGAIN: a non-blocking socket is full). */
ssize_t os_file_send(int socket, int file, off_t *at, size_t n);
/* Makes the file's bytes durable, and of its facts only those that reading it needs. Returns 0, or
 * -1 with errno. */
int os_file_sync_data(int fd);
/* Makes a pipe, to read at ends[0] and to write at ends[1], both non-blocking and close-on-exec.
 * Returns 0, or -1 with errno. */
int os_file_pipe(int ends[2]);

#endif
