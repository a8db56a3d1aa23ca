/* checkpoint_goes.h: decides which state files of a worker's directory are removed: by age, by a
 * rollback, by another history. Pure: no I/O, no allocation. The state store and the simulator use
 * the same functions. */
#ifndef RV_WORKER_STATE_CHECKPOINT_GOES_H
#define RV_WORKER_STATE_CHECKPOINT_GOES_H

#include "worker/state/checkpoint_index.h"

/* The kinds of state files in a worker's directory. */
enum statestore_file {
	STATE_FILE_SNAPSHOT = STATE_KIND_SNAPSHOT,
	STATE_FILE_LOG = STATE_KIND_LOG,
	STATE_FILE_REPLICA,
	STATE_FILE_PART, /* a snapshot that is being fetched: state_assembly.h */
	STATE_FILE_MEANS /* what encoding means left: means_recovery.h; its number is no round */
};

/* Returns true if retention removes the file; `keep` is checkpoint_retention() for `named`. A
 * fetched part of an older state than the worker's is removed too. */
bool checkpoint_goes_by_age(const struct checkpoint_keep *keep, const struct checkpoint_named *named,
							enum statestore_file file, uint64_t round);

/* Returns true if a rollback to round `to` gives the file up: a log entry from `to` on, or a
 * snapshot after it. The replica stays. */
bool checkpoint_goes_by_rollback(enum statestore_file file, uint64_t round, uint64_t to);

/* The digests of rounds [first, first + n) in a signed document. */
struct checkpoint_committed {
	uint64_t first;
	int n;
	const struct rv_hash *digests;
};
/* Returns true if the file may be of another history than the state of round `from` that replaces
 * it: log entries from `from` on, snapshots after it, the replica, and entries before it that
 * nothing proves. `committed` entries stay: they may be the last copies. `x` lists the
 * directory. */
bool checkpoint_goes_by_history(const struct checkpoint_index *x, const struct checkpoint_committed *committed,
								uint64_t from, enum statestore_file file, uint64_t round);

#endif
