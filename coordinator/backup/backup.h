/* backup.h: a whole run in one file: a copy of its store, with run.key in it, not root.key (mode
 * 0600).
 *
 * A backup is older than the run as soon as the next round is committed. Workers never go back:
 * restored from an older state, a run can go on only with workers that are not ahead of it. So an
 * older state replaces a newer one only by `force`. */
#ifndef RV_COORDINATOR_BACKUP_H
#define RV_COORDINATOR_BACKUP_H

#include "coordinator/store/run_dir.h"
#include "coordinator/store/store.h"

#include <stdbool.h>

struct backup_info {
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint64_t term;  /* rollbacks so far */
	uint64_t facts; /* number of records but for document numbers; only grows as the run goes on */
	uint64_t round; /* next round to be committed */
	uint64_t last_id, doc_seq;
};

/* A copier of the run's store into the empty file `path`: store_ops.copy, of the coordinator that
 * serves the run or, if none does, of this process. */
struct backup_source {
	enum rv_err (*copy)(void *ctx, const char *path, struct rv_errtext *et);
	void *ctx;
};

/* Makes the backup `path` of the run `d`, mode 0600. Reads every record of the copy back, then
 * appends the key (coordinator/backup/backup_file.h). Replaces `path` atomically: it is whole or
 * not there. The copy is made beside it, as the run's own disk may be full; files that killed
 * backups left there are removed. Backups of one run wait for each other. Faults of `from`;
 * RV_E_CORRUPT names the run's store, as a fault in its copy is a fault there; RV_E_FULL and
 * RV_E_IO of `path`. */
enum rv_err backup_make(const struct run_dir *d, const char *path, const struct backup_source *from,
						struct backup_info *out, struct rv_errtext *et);
/* Does the same, so that only the passphrase opens it (backup_encryption.h). Makes the plain copy
 * in the run's directory, which holds the same secrets, and removes it. */
enum rv_err backup_make_encrypted(const struct run_dir *d, const char *path, const char *passphrase,
								  const struct backup_source *from, struct backup_info *out, struct rv_errtext *et);
/* Restores d->dir from the backup (`passphrase` NULL: none is known), once every byte of it is
 * checked; keeps the store that is there as store.db.replaced. Document numbers go on far above any
 * that the run can have announced since. RV_E_BUSY: the run is being served; RV_E_INVALID: another
 * run is there, or, without `force`, a later term, a newer state or an unreadable one;
 * RV_E_CORRUPT: `path` is damaged, or no backup; RV_E_UNSUPPORTED: of a newer version; RV_E_AUTH:
 * it is encrypted, and the passphrase is missing or another one. */
enum rv_err backup_restore(const char *path, const char *passphrase, const struct run_dir *d, bool force,
						   struct backup_info *out, struct rv_errtext *et);

#endif
