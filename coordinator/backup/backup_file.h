/* backup_file.h: the file of a backup: an SQLite file, and after it a seal of 40 bytes: "RVBKSEAL" and the BLAKE2b-256
 * of all that is before it. SQLite does not look at bytes after the last page. Backups of releases before had no seal:
 * they are whole pages, of 512 bytes or a multiple, and are read as well. One that has lost its seal looks the same: so
 * the store in a sealed one says that it was sealed (coordinator/backup/backup.c). */
#ifndef RV_COORDINATOR_BACKUP_FILE_H
#define RV_COORDINATOR_BACKUP_FILE_H

#include "base/err.h"

#include <stdbool.h>

/* What a text that refuses a backup ends with. */
#define BACKUP_FILE_NEXT_STEP "nothing was restored: fetch the file again from where it was made, or use another"

/* Copies the SQLite file `from` to `path`, sealed, mode 0600, atomically. RV_E_FULL, RV_E_IO. */
enum rv_err backup_file_seal(const char *from, const char *path, struct rv_errtext *et);
/* Copies the SQLite file in the backup `path` to `to`, mode 0600, atomically; *sealed: it has a seal, which it matches.
 * RV_E_CORRUPT: it is not what was sealed, or cannot be a backup: nothing is at `to`. RV_E_FULL, RV_E_IO,
 * RV_E_NOTFOUND. */
enum rv_err backup_file_open(const char *path, const char *to, bool *sealed, struct rv_errtext *et);

#endif
