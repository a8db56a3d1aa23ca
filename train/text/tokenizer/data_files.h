/* data_files.h: the files that a path names, mapped read-only and read as one sequence of bytes. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_DATA_FILES_H
#define RV_TRAIN_TEXT_TOKENIZER_DATA_FILES_H

#include "base/err.h"
#include "base/hash.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_FILES_MAX = 32768 }; /* Linux allows a process about 65,000 mappings */

struct data_files {
	struct mapped_file *files; /* (n_files) without empty files */
	uint64_t *begin;           /* (n_files) position of each file's first byte in the concatenation */
	size_t n_files, cap;
	uint64_t bytes;
};

/* Maps the files that `path` names: a regular file; the regular files in a directory in byte order
 * of names; or, if no file has that name and it contains one of * ? [, the regular files that match
 * this pattern (glob(7)) in byte order of paths. `names`, if not NULL, is a pattern that selects
 * files of a directory. Returns RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, RV_E_INVALID (neither file nor
 * directory) or RV_E_RANGE (more than DATA_FILES_MAX); `d` is then empty. */
enum rv_err data_files_init(struct data_files *d, const char *path, const char *names, struct rv_errtext *et);
/* Adds the files that another path names, behind those of `d`. Returns what data_files_init
 * returns; `d` is then to be released. */
enum rv_err data_files_add(struct data_files *d, const char *path, const char *names, struct rv_errtext *et);
void data_files_release(struct data_files *d);
/* Copies bytes [begin, begin + n), asserted to exist. Returns what mapped_file_read returns. */
enum rv_err data_files_read(const struct data_files *d, uint64_t begin, size_t n, uint8_t *out, struct rv_errtext *et);

/* Sets *tokens: all are token files (shard.h), or none is. Returns RV_E_INVALID, naming two files,
 * for a mixture. */
enum rv_err data_files_sort(const struct data_files *d, bool *tokens, struct rv_errtext *et);
/* Sets *tokens: token files or plain text. Returns what data_files_sort and text_check return. */
enum rv_err data_files_are_tokens(const struct data_files *d, bool *tokens, struct rv_errtext *et);
/* Maps the text files that `path` names. Returns RV_E_INVALID for token files, and what
 * data_files_init and text_check return. */
enum rv_err data_files_init_text(struct data_files *d, const char *path, struct rv_errtext *et);

/* Hashes the files without reading all of them: their number and, of each, size, modification time
 * and first and last 4 KiB. Returns RV_E_IO. */
enum rv_err data_files_identity(const struct data_files *d, struct rv_hash *out, struct rv_errtext *et);

#endif
