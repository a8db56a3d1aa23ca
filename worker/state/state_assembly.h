/* state_assembly.h: a snapshot or a log entry that comes together from pieces, in any order, from anybody.
 *
 * Nothing is trusted: the manifest is checked against the committed hash, each piece against the manifest. A snapshot is
 * put together in snapshot-R.part beside the other state files; it survives a restart, and state_assembly_new() takes it up
 * again (what is in it is checked, about 1 GB/s). It gets its own name when it has been installed: statestore_adopt().
 * When the disk has no room for it, it is put together in memory. A log entry is always put together in memory. There
 * is one assembly at a time in a directory: the part file of another round is removed.
 *
 * Functions block on the disk; one thread at a time.
 */
#ifndef RV_WORKER_STATE_STATE_ASSEMBLY_H
#define RV_WORKER_STATE_STATE_ASSEMBLY_H

#include "worker/state/state_file.h"
#include "worker/state/statestore.h"

struct state_assembly;

/* `s` is borrowed. id->expect all zero (the snapshot of round 0, which no document vouches for): any manifest is taken, and
 * who installs the state checks it. RV_E_NOMEM, RV_E_IO. */
enum rv_err state_assembly_new(const struct statestore *s, const struct state_id *id, struct state_assembly **out,
							   struct rv_errtext *et);
/* Keeps snapshot-R.part for the next time. NULL is fine. */
void state_assembly_free(struct state_assembly *a);
/* Removes it: what it holds is of no use. NULL is fine. */
void state_assembly_discard(struct state_assembly *a);

const struct state_id *state_assembly_id(const struct state_assembly *a);
/* state_manifest_hashes() of them, the first time. RV_E_CORRUPT: not those of the committed hash: the donor's fault.
 * RV_E_NOMEM, RV_E_IO: ours. */
enum rv_err state_assembly_set_manifest(struct state_assembly *a, const struct rv_hash *manifest,
										struct rv_errtext *et);

/* state_manifest_hashes() of them; NULL: none yet. */
const struct rv_hash *state_assembly_manifest(const struct state_assembly *a);

bool state_assembly_has(const struct state_assembly *a, uint32_t i);
uint32_t state_assembly_left(const struct state_assembly *a); /* pieces; all of them before there is a manifest */
/* Piece i as a donor stores it; a piece that is there already is ignored. RV_E_CORRUPT: the donor's fault. RV_E_NOMEM,
 * RV_E_IO: ours. */
enum rv_err state_assembly_put(struct state_assembly *a, uint32_t i, const struct state_stored *what,
							   const void *stored, struct rv_errtext *et);

/* state_assembly_left() == 0. What was put together, open for reading, and durable: a snapshot as snapshot-R.part, a log entry
 * as log-R.rvl (of attempt 0: on the word of a signed document). When the disk does not take it, it is in memory only:
 * *warning says why, and is empty otherwise. The assembly is used up: free it. RV_E_NOMEM, RV_E_IO, RV_E_CORRUPT: there
 * is nothing. */
enum rv_err state_assembly_finish(struct state_assembly *a, struct state_file **out, struct rv_errtext *warning,
								  struct rv_errtext *et);

#endif
