/* file_hash.h: the hash of a file, in the memory of a part of it. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_FILE_HASH_H
#define RV_TRAIN_TEXT_PUBLISHED_FILE_HASH_H

#include "base/err.h"
#include "base/hash.h"

/* Hashes a file. RV_E_NOTFOUND, RV_E_IO. */
enum rv_err file_hash(const char *path, struct rv_hash *out, struct rv_errtext *et);
/* Hashes an open file of exactly `bytes` bytes. RV_E_CORRUPT: it has another size; RV_E_IO. `path`
 * is its name in error texts. */
enum rv_err file_hash_open(int fd, const char *path, uint64_t bytes, struct rv_hash *out, struct rv_errtext *et);

#endif
