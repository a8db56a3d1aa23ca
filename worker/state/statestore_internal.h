/* statestore_internal.h: shared by statestore*.c only. */
#ifndef RV_WORKER_STATE_STATESTORE_INTERNAL_H
#define RV_WORKER_STATE_STATESTORE_INTERNAL_H

#include "worker/state/statestore.h"

/* Reads *kind and *round (0 for the replica) from a file's name. Returns false for another file. */
bool statestore_parse_name(const char *name, enum statestore_file *kind, uint64_t *round);
/* Reads the header of the replica's file. The faults of state_replica_header_load, RV_E_NOTFOUND,
 * RV_E_IO. */
enum rv_err statestore_replica_header(const struct statestore *s, struct state_replica_info *out,
									  struct rv_errtext *et);
/* Reads the header of a log entry. The faults of state_log_header_load, RV_E_NOTFOUND, RV_E_IO. */
enum rv_err statestore_log_header(const struct statestore *s, uint64_t round, struct state_log_info *out,
								  struct rv_errtext *et);
/* Allocates an index, which is large; NULL: no memory. */
struct checkpoint_index *statestore_new_index(const struct statestore *s, struct rv_errtext *et);
/* Called by statestore_scan_with for each file whose header is unreadable. */
typedef void statestore_bad_header(const struct statestore *s, enum statestore_file kind, uint64_t round,
								   enum rv_err why, const struct rv_errtext *text);
enum rv_err statestore_scan_with(const struct statestore *s, struct checkpoint_index *out, statestore_bad_header *bad,
								 struct rv_errtext *et);
/* Logs that the file is unusable, and sets it aside if it is damaged (RV_E_CORRUPT) or a replica of
 * a newer version, not if the disk or this program cannot read it. */
void statestore_set_aside(const struct statestore *s, enum statestore_file kind, uint64_t round, enum rv_err why,
						  const struct rv_errtext *text);
/* Removes temporary files of a killed process. */
void statestore_remove_leftovers(const struct statestore *s);
/* Syncs the directory. Removed files must not come back if the power fails while the snapshot that
 * replaces them is written: it would seem to prove an entry that was never committed. RV_E_IO. */
enum rv_err statestore_sync(const struct statestore *s, struct rv_errtext *et);
/* Removes the files of a rollback to `round`, or moves them to the directory `into` (not NULL).
 * RV_E_IO: the first fault; the other files are gone. */
enum rv_err statestore_take_from(const struct statestore *s, uint64_t round, const char *into, struct rv_errtext *et);

#endif
