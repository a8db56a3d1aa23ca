/* statestore_internal.h: shared by statestore*.c only. */
#ifndef RV_WORKER_STATE_STATESTORE_INTERNAL_H
#define RV_WORKER_STATE_STATESTORE_INTERNAL_H

#include "worker/state/statestore.h"

/* A file of this store by its name: *kind and *round (0 for the replica). false: another file. */
bool statestore_parse_name(const char *name, enum statestore_file *kind, uint64_t *round);
/* What the replica's file says of itself. */
enum rv_err statestore_replica_header(const struct statestore *s, struct state_replica_info *out,
									  struct rv_errtext *et);
/* The index is large. NULL: no memory. */
struct checkpoint_index *statestore_new_index(const struct statestore *s, struct rv_errtext *et);
/* Scans; told of each file whose header cannot be read. */
typedef void statestore_bad_header(const struct statestore *s, enum statestore_file kind, uint64_t round,
								   enum rv_err why, const struct rv_errtext *text);
enum rv_err statestore_scan_with(const struct statestore *s, struct checkpoint_index *out, statestore_bad_header *bad,
								 struct rv_errtext *et);
/* Says that the file cannot be used, and sets it aside when it is damaged (RV_E_CORRUPT): not when the disk, or this
 * program, cannot read it. */
void statestore_set_aside(const struct statestore *s, enum statestore_file kind, uint64_t round, enum rv_err why,
						  const struct rv_errtext *text);
/* Temporary files of a process that was killed while it wrote. */
void statestore_remove_leftovers(const struct statestore *s);
/* What was removed must not come back when the power goes while the snapshot that takes its place is being written: an
 * entry that was never committed would then seem to be proved by that snapshot. RV_E_IO. */
enum rv_err statestore_sync(const struct statestore *s, struct rv_errtext *et);
/* Removes those, or moves them to the directory `into` (not NULL). RV_E_IO: the first fault; the others are gone. */
enum rv_err statestore_take_from(const struct statestore *s, uint64_t round, const char *into, struct rv_errtext *et);

#endif
