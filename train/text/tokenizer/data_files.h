/* data_files.h: the files that a path names, mapped read-only and read as one run of bytes. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_DATA_FILES_H
#define RV_TRAIN_TEXT_TOKENIZER_DATA_FILES_H

#include "base/err.h"
#include "base/hash.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_FILES_MAX = 32768 }; /* a process has some 65,000 mappings */

struct data_files {
	struct mapped_file *files; /* (n_files) none is empty: those are left out */
	uint64_t *begin;           /* (n_files) position of each file's first byte in the concatenation */
	size_t n_files, cap;
	uint64_t bytes;
};

/* `path`: a regular file, or a directory, whose regular files (not those of its subdirectories) are taken in the byte
 * order of their names, or, when nothing has that name and it holds one of * ? [, a pattern (glob(7)) whose matches
 * that are regular files are taken in the byte order of their paths. `names`: of a directory only the files that match
 * this pattern; NULL: all. RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, RV_E_INVALID (neither file nor directory), RV_E_RANGE
 * (more than DATA_FILES_MAX). On failure `d` holds nothing. */
enum rv_err data_files_init(struct data_files *d, const char *path, const char *names, struct rv_errtext *et);
void data_files_release(struct data_files *d);
/* Copies bytes [begin, begin + n) of the concatenation; asserts that they exist. What mapped_file_read refuses. */
enum rv_err data_files_read(const struct data_files *d, uint64_t begin, size_t n, uint8_t *out, struct rv_errtext *et);

/* Are they token files (train/text/tokenizer/shard.h) or text? RV_E_INVALID names two that are not of one sort; what
 * text_check refuses. */
enum rv_err data_files_are_tokens(const struct data_files *d, bool *tokens, struct rv_errtext *et);
/* data_files_init() where only text will do: RV_E_INVALID names token files; what text_check refuses. */
enum rv_err data_files_init_text(struct data_files *d, const char *path, struct rv_errtext *et);

/* Names the files' content without reading all of it: H over their number and, of each, the size, when it was last
 * modified, its begin and its end. RV_E_IO. */
enum rv_err data_files_identity(const struct data_files *d, struct rv_hash *out, struct rv_errtext *et);

#endif
