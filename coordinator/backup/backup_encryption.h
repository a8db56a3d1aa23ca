/* backup_encryption.h: a backup that only a passphrase opens.
 *
 *   "RVBKCRPT", version u32 (1), operations u64 and memory u64 of Argon2id (RFC 9106), salt (16)
 *   header of the stream (24), an empty piece (17), which only the passphrase opens
 *   pieces of 65,536 bytes of the backup, each encrypted and 17 bytes longer; the last one is
 *   shorter and marked as the last (libsodium's secretstream: XChaCha20-Poly1305)
 *
 * Integers are little-endian. A piece that is changed, moved, left out or cut off is noticed. */
#ifndef RV_COORDINATOR_BACKUP_ENCRYPTION_H
#define RV_COORDINATOR_BACKUP_ENCRYPTION_H

#include "base/err.h"

#include <stdbool.h>

enum { BACKUP_PASSPHRASE_BYTES = 1024 /* NUL included */ };

/* Reads the first line of a file, or of standard input ("-"), as a passphrase. RV_E_INVALID: it is
 * empty; RV_E_RANGE: too long; RV_E_NOTFOUND, RV_E_IO. */
enum rv_err backup_passphrase_read(const char *path, char out[BACKUP_PASSPHRASE_BYTES], struct rv_errtext *et);

/* Returns true if the file at `path` begins as one that is encrypted. */
bool backup_is_encrypted(const char *path);

/* Writes the file `from` to `to`, encrypted, mode 0600, atomically. Takes about a second and 256
 * MiB. RV_E_NOMEM, RV_E_FULL, RV_E_IO. */
enum rv_err backup_encrypt(const char *from, const char *to, const char *passphrase, struct rv_errtext *et);
/* Writes what `from` holds encrypted to `to`, mode 0600, atomically. RV_E_AUTH: another passphrase;
 * RV_E_CORRUPT: damaged or cut off; RV_E_UNSUPPORTED: of a newer version; RV_E_RANGE: it asks for
 * more than this program gives to a passphrase; RV_E_NOMEM, RV_E_FULL, RV_E_IO. After a fault there
 * is no file at `to`. */
enum rv_err backup_decrypt(const char *from, const char *to, const char *passphrase, struct rv_errtext *et);

#endif
