/* state_assembly.h: assembles a snapshot or a log entry from pieces, in any order, from any donor.
 *
 * Nothing is trusted: the manifest is checked against the committed hash, each piece against the
 * manifest. A snapshot is assembled in snapshot-R.part beside the other state files; it survives a
 * restart, and state_assembly_new() continues it after checking its content (about 1 GB/s).
 * statestore_adopt() renames it once it is installed. If the disk has no room, it is assembled in
 * memory, as a log entry always is. A directory has one assembly at a time: the part file of
 * another round is removed.
 *
 * Functions block on the disk; one thread at a time. */
#ifndef RV_WORKER_STATE_STATE_ASSEMBLY_H
#define RV_WORKER_STATE_STATE_ASSEMBLY_H

#include "worker/state/state_file.h"
#include "worker/state/statestore.h"

struct state_assembly;

/* Begins or continues an assembly; borrows `s`. id->expect all zero (the snapshot of round 0, which
 * no document vouches for) accepts any manifest; the caller checks the state when it installs it.
 * RV_E_NOMEM, RV_E_IO. */
enum rv_err state_assembly_new(const struct statestore *s, const struct state_id *id, struct state_assembly **out,
							   struct rv_errtext *et);
/* Frees the assembly and keeps snapshot-R.part for a later one. `a` may be NULL. */
void state_assembly_free(struct state_assembly *a);
/* Takes the manifest (state_manifest_hashes() hashes), once. RV_E_CORRUPT: it does not make the
 * committed hash, which is the donor's fault. RV_E_NOMEM, RV_E_IO: a local fault. */
enum rv_err state_assembly_set_manifest(struct state_assembly *a, const struct rv_hash *manifest,
										struct rv_errtext *et);

/* Returns the manifest; NULL: none yet. */
const struct rv_hash *state_assembly_manifest(const struct state_assembly *a);

bool state_assembly_has(const struct state_assembly *a, uint32_t i);
uint32_t state_assembly_left(const struct state_assembly *a); /* pieces; all of them before there is a manifest */
/* Takes piece i as a donor stores it; ignores one that is there. RV_E_CORRUPT: the donor's fault.
 * RV_E_NOMEM, RV_E_IO: a local fault. */
enum rv_err state_assembly_put(struct state_assembly *a, uint32_t i, const struct state_stored *what,
							   const void *stored, struct rv_errtext *et);

/* Makes the complete file (state_assembly_left() == 0) durable: a snapshot as snapshot-R.part,
 * which is opened as *snapshot; a log entry as log-R.rvl (of attempt 0: proved by a signed
 * document), whose reduced bytes are *log, one reference. The other one is NULL. If the disk cannot
 * take it, it stays in memory and *warning states why; else *warning is empty. The assembly is used
 * up: free it. RV_E_NOMEM, RV_E_IO, RV_E_CORRUPT: neither is set. */
enum rv_err state_assembly_finish(struct state_assembly *a, struct state_file **snapshot, struct blob **log,
								  struct rv_errtext *warning, struct rv_errtext *et);

#endif
