/* recovery.h: rebuilds the shared state from a worker's files when its process starts: the snapshot
 * that it begins with, the log entries that follow, the replacement of a damaged file, and the vote
 * that the worker holds.
 *
 * No I/O of its own: files are read and written through `struct recovery_files`, so that the state
 * store (worker/state/statestore_recover.c) and the simulator run the same code. The operations may
 * block. */
#ifndef RV_WORKER_STATE_RECOVERY_H
#define RV_WORKER_STATE_RECOVERY_H

#include "worker/state/blob.h"
#include "worker/state/checkpoint_index.h"
#include "worker/state/replica_file.h"
#include "worker/state/state_format.h"

/* Whether the state that recovery gets is theta0 of the run. */
enum statestore_theta0 {
	THETA0_OF_SEED, /* yes: any member makes the same */
	/* yes, and other members fetch it from this directory: snapshot 0 is written if there is no
	 * snapshot */
	THETA0_GIVEN,
	THETA0_IS_LACKED /* no: a snapshot is needed, and nothing is replayed without one */
};

/* The result of recovery. */
struct recovered {
	/* THETA0_IS_LACKED, and no usable snapshot: *g is unspecified, and the other fields are
	 * empty. */
	bool lacks_state;
	struct checkpoint_start start; /* *g was made from it and the entries [start.round, g->round) */
	/* A log entry of round g->round: a vote, perhaps not committed; or the outer step that the
	 * replica waits for (attempt 0: committed). */
	bool has_log;
	struct state_log_info log;
	struct blob *reduced; /* has_log: its reduced bytes, one reference */
	/* The full hash of the latest scheduled state on the way to *g; full_round 0: none. */
	uint64_t full_round;
	struct rv_hash full_hash;
	bool has_replica;
	struct state_replica_info replica;
	struct replica_file *replica_file;  /* has_replica: the payload borrows it; NULL: it does not */
	struct byte_source replica_payload; /* has_replica: replica.payload_bytes, not checked */
};

/* The directory, as recovery needs it. set_aside() gets every refused file, except the replica,
 * which load_replica() sets aside itself. */
struct recovery_files {
	void *ctx;
	/* Checks the whole snapshot, then fills *g and *full_hash. A fault leaves *g unchanged, or
	 * makes theta0 lacked (recovery_config). */
	enum rv_err (*load_snapshot)(void *ctx, uint64_t round, struct global_state *g, struct rv_hash *full_hash,
								 struct rv_errtext *et);
	/* Reads a log entry. *reduced: one reference, which the caller drops. */
	enum rv_err (*load_log)(void *ctx, uint64_t round, struct state_log_info *info, struct blob **reduced,
							struct rv_errtext *et);
	/* Fills has_replica, replica, replica_file and replica_payload. */
	void (*load_replica)(void *ctx, struct recovered *out);
	enum rv_err (*write_snapshot)(void *ctx, const struct global_state *g, struct rv_errtext *et);
	void (*set_aside)(void *ctx, enum state_kind kind, uint64_t round, enum rv_err why, const struct rv_errtext *text);
	/* Logs that a snapshot could not be written. */
	void (*not_written)(void *ctx, enum rv_err why, const struct rv_errtext *text);
};

struct recovery_config {
	enum statestore_theta0 theta0; /* load_snapshot() may change it */
	struct checkpoint_schedule schedule;
};

/* Brings *g (at theta0, round 0) to the latest round that the files in `x` prove committed; one
 * less if the replica waits for that outer step. Marks damaged files in `x`. Fails only if theta0
 * was given and cannot be written, with the fault of write_snapshot(). */
enum rv_err recovery_run(const struct recovery_files *files, const struct recovery_config *cfg,
						 struct checkpoint_index *x, struct global_state *g, struct recovered *out,
						 struct rv_errtext *et);

#endif
