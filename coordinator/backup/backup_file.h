/* backup_file.h: the file of a backup: an SQLite file (whole pages of at least 512 bytes), and
 * after it a seal: the bytes of run.key (RUN_KEYS_BYTES), the version (4, little-endian: 1),
 * "RVBKSEAL", and the BLAKE2b-256 of all that is before the hash. */
#ifndef RV_COORDINATOR_BACKUP_FILE_H
#define RV_COORDINATOR_BACKUP_FILE_H

#include "base/err.h"
#include "base/file.h"
#include "coordinator/store/run_keys.h"

#define BACKUP_FILE_MAGIC "RVBKSEAL"
enum { BACKUP_FILE_MAGIC_BYTES = 8, BACKUP_FILE_VERSION = 1, BACKUP_FILE_SEAL_BYTES = RUN_KEYS_BYTES + 4 + 8 + 32 };

/* Appends the seal to the SQLite file that `w` already holds. RV_E_FULL, RV_E_IO, RV_E_NOMEM. */
enum rv_err backup_file_seal(struct rv_file_writer *w, const struct run_keys *keys, struct rv_errtext *et);
/* Copies the SQLite file in the backup `path` to `to`, mode 0600, atomically, and fills *keys.
 * RV_E_CORRUPT: it differs from what was sealed, or is no backup; RV_E_UNSUPPORTED: of a newer
 * version; RV_E_NOTFOUND, RV_E_FULL, RV_E_IO, RV_E_NOMEM. After a fault there is no file at
 * `to`. */
enum rv_err backup_file_open(const char *path, const char *to, struct run_keys *keys, struct rv_errtext *et);

#endif
