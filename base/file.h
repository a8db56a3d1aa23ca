/* file.h: files that are either whole or not there. All functions block on the disk. */
#ifndef RV_BASE_FILE_H
#define RV_BASE_FILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads n bytes at `at`, continuing after signals. Returns how many: fewer if the file ends; -1
 * with errno on error. */
ssize_t rv_read_at(int fd, void *out, size_t n, uint64_t at);
/* Write all n bytes at `at`, or at the descriptor's position, continuing after signals. Return
 * false with errno on error. */
bool rv_write_at(int fd, const void *data, size_t n, uint64_t at);
bool rv_write_all(int fd, const void *data, size_t n);

/* Reads a whole file of at most `max_bytes` into a fresh NUL-terminated buffer; the caller frees
 * *out. RV_E_NOTFOUND, RV_E_RANGE (larger than max_bytes; nothing is read), RV_E_INVALID (not a
 * regular file), RV_E_IO, RV_E_NOMEM. */
enum rv_err rv_file_read(const char *path, size_t max_bytes, uint8_t **out, size_t *out_bytes, struct rv_errtext *et);

/* Writes path atomically: a temporary file beside it, fsync, rename, fsync of the directory. After
 * a crash `path` holds the old bytes or the new ones, never a mixture. RV_E_FULL, RV_E_RANGE (the
 * path is too long), RV_E_IO; the temporary file is removed on failure. */
enum rv_err rv_file_write_atomic(const char *path, const void *data, size_t n, mode_t mode, struct rv_errtext *et);

/* Writes the same in pieces, with the same faults: begin, write (any number), then either commit or
 * abandon. A commit that fails abandons by itself. */
struct rv_file_writer {
	int fd;
	char path[512], tmp[544];
};
enum rv_err rv_file_writer_begin(struct rv_file_writer *w, const char *path, mode_t mode, struct rv_errtext *et);
enum rv_err rv_file_writer_write(struct rv_file_writer *w, const void *data, size_t n, struct rv_errtext *et);
/* Overwrites n bytes at offset `at` that are written already: a header that is known only at the
 * end. */
enum rv_err rv_file_writer_patch(struct rv_file_writer *w, const void *data, size_t n, uint64_t at,
								 struct rv_errtext *et);
enum rv_err rv_file_writer_commit(struct rv_file_writer *w, struct rv_errtext *et);
void rv_file_writer_abandon(struct rv_file_writer *w);
/* Commits if `e`, what the writing returned, is RV_OK; else abandons, and returns e. */
enum rv_err rv_file_writer_end(struct rv_file_writer *w, enum rv_err e, struct rv_errtext *et);

/* Makes renames and removals in the directory of `path` durable. RV_E_IO. */
enum rv_err rv_file_sync_parent(const char *path, struct rv_errtext *et);

/* Makes a directory and its parents (mkdir -p); existing ones are fine. RV_E_INVALID (path is ""),
 * RV_E_RANGE (too long), RV_E_FULL, RV_E_IO. */
enum rv_err rv_dir_make(const char *path, mode_t mode, struct rv_errtext *et);

/* Takes an exclusive advisory lock on DIR/lock until rv_dir_unlock() or the end of the process.
 * RV_E_BUSY names the directory and the pid that holds it; RV_E_RANGE, RV_E_IO. */
enum rv_err rv_dir_lock(const char *dir, int *out_fd, struct rv_errtext *et);
void rv_dir_unlock(int fd);

#endif
