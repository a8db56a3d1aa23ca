/* checkpoint_goes.h: which state files of a worker's directory go: by age, by a rollback, by another history. Pure: no
 * I/O, no allocation. The state store removes what these say, and so does the simulator. */
#ifndef RV_WORKER_STATE_CHECKPOINT_GOES_H
#define RV_WORKER_STATE_CHECKPOINT_GOES_H

#include "worker/state/checkpoint_index.h"

/* What lies in a worker's directory. */
enum statestore_file {
	STATE_FILE_SNAPSHOT = STATE_KIND_SNAPSHOT,
	STATE_FILE_LOG = STATE_KIND_LOG,
	STATE_FILE_REPLICA,
	STATE_FILE_PART /* a snapshot that is being fetched: state_assembly.h */
};

/* Returns true if retention removes the file: `keep` is what checkpoint_retention() says for `named`. A fetched part of
 * a state that is behind the worker goes too. */
bool checkpoint_goes_by_age(const struct checkpoint_keep *keep, const struct checkpoint_named *named,
							enum statestore_file file, uint64_t round);

/* Returns true if a rollback to round `to` gives the file up: a log entry from it on, or a snapshot after it. The replica
 * stays. */
bool checkpoint_goes_by_rollback(enum statestore_file file, uint64_t round, uint64_t to);

/* Digests of rounds [first, first + n), as a signed document has them. */
struct checkpoint_committed {
	uint64_t first;
	int n;
	const struct rv_hash *digests;
};
/* Returns true if the file may be of another history than the state of round `from` that takes its place: log entries
 * from it on, snapshots after it, the replica, and entries before it that nothing proves. Entries that are `committed`
 * stay: they may be the last ones there are. `x` lists what the directory holds. */
bool checkpoint_goes_by_history(const struct checkpoint_index *x, const struct checkpoint_committed *committed,
								uint64_t from, enum statestore_file file, uint64_t round);

#endif
