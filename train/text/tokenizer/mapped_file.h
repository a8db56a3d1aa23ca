/* mapped_file.h: a regular file mapped read-only, read so that nothing that happens to the file can kill the process.
 *
 * A byte of a mapping that the file no longer has (somebody cut it short) or that the disk cannot give raises SIGBUS
 * when it is touched. So nobody touches: mapped_file_read() lets the kernel copy, and the kernel returns a fault; where
 * a sandbox forbids that call, the file is read instead. A file that is replaced (renamed over) or removed stays
 * readable as it was.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_MAPPED_FILE_H
#define RV_TRAIN_TEXT_TOKENIZER_MAPPED_FILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Any number of threads may read. */
struct mapped_file {
	char *path;
	const uint8_t *at; /* NULL: the file is empty */
	size_t bytes;
	int fd;           /* open where the kernel may not copy out of the mapping; else -1 */
	int64_t mtime_ns; /* when it was opened */
};

/* RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, RV_E_INVALID (not a regular file), each naming the path. */
enum rv_err mapped_file_open(struct mapped_file *m, const char *path, struct rv_errtext *et);
void mapped_file_close(struct mapped_file *m);

/* Copies bytes [from, from + n); asserts that they were there when it was opened. RV_E_IO: they are not any more. */
enum rv_err mapped_file_read(const struct mapped_file *m, size_t from, size_t n, void *out, struct rv_errtext *et);

#endif
