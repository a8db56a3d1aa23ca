/* data_files.h: one file, or all files of a directory, mapped read-only and read as one run of bytes. */
#ifndef RV_WORKER_TOKENIZER_DATA_FILES_H
#define RV_WORKER_TOKENIZER_DATA_FILES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct data_file {
	const uint8_t *at; /* mapped */
	uint64_t begin;    /* its first byte's position in the concatenation */
	uint64_t bytes;    /* > 0: empty files are left out */
};

struct data_files {
	struct data_file *files;
	size_t n_files;
	uint64_t bytes;
};

/* `path`: a regular file, or a directory, whose regular files (not those of its subdirectories) are taken in the byte
 * order of their names. The files must not be cut short while they are mapped. RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM,
 * RV_E_INVALID (neither file nor directory), RV_E_RANGE (too many files). On failure `t` holds nothing. */
enum rv_err data_files_init(struct data_files *t, const char *path, struct rv_errtext *et);
void data_files_release(struct data_files *t);
/* Copies bytes [begin, begin + n) of the concatenation; asserts that they exist. */
void data_files_read(const struct data_files *t, uint64_t begin, size_t n, uint8_t *out);

#endif
