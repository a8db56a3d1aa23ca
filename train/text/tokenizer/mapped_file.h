/* mapped_file.h: a regular file, mapped read-only; changes to it cannot kill the process.
 *
 * Touching a mapped byte raises SIGBUS if the file was truncated or its disk fails.
 * mapped_file_read() lets the kernel copy instead, which returns a fault; in a sandbox without that
 * call it reads the file. A replaced (renamed over) or removed file stays readable. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_MAPPED_FILE_H
#define RV_TRAIN_TEXT_TOKENIZER_MAPPED_FILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* An open file; any number of threads may read it. */
struct mapped_file {
	char *path;
	const uint8_t *at; /* NULL: the file is empty */
	size_t bytes;
	int fd;           /* open if the kernel cannot copy from the mapping; else -1 */
	int64_t mtime_ns; /* modification time when it was opened */
};

/* Maps a file. Returns RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, or RV_E_INVALID (not a regular file). */
enum rv_err mapped_file_open(struct mapped_file *m, const char *path, struct rv_errtext *et);
void mapped_file_close(struct mapped_file *m);

/* Copies bytes [from, from + n), asserted to have existed. Returns RV_E_IO if they no longer do. */
enum rv_err mapped_file_read(const struct mapped_file *m, size_t from, size_t n, void *out, struct rv_errtext *et);

#endif
