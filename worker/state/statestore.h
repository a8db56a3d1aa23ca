/* statestore.h: the state files in a worker's directory: written whole or not at all, found again
 * at start.
 *
 *     snapshot-R.rvs   theta and outer state at round R     log-R.rvl     reduced bytes of round R
 *     replica.rvp      the worker's own state               means-S.rvm   what encoding means left
 *     given-up-E/      snapshots and log entries that a rollback took back
 *
 * The shared state of any round is a snapshot (or theta0) plus the log entries since, replayed
 * through global_apply. checkpoint_index.h decides which files prove what and which may go. Files
 * are checked when read; a damaged one is named, set aside as NAME.damaged, and the one before it
 * used. Functions block on the disk: the storage thread calls them, or the start before the event
 * loop. The store itself is read-only after init. */
#ifndef RV_WORKER_STATE_STATESTORE_H
#define RV_WORKER_STATE_STATESTORE_H

#include "worker/state/blob.h"
#include "worker/state/checkpoint_goes.h"
#include "worker/state/means_recovery.h"
#include "worker/state/recovery.h"
#include "worker/state/replica_file.h"
#include "worker/state/state_file.h"
#include "worker/state/state_format.h"

enum { STATESTORE_PATH_BYTES = 320, STATESTORE_MAX_DAMAGED = 4 /* set aside; the oldest go */ };

struct statestore {
	char dir[256];
	enum statestore_theta0 theta0;
	struct global_config cfg;
	struct checkpoint_schedule schedule; /* of the run */
	/* H of a run with overlap-steps: a replica with that many steps of its round waits for the
	 * outer step. 0: none waits. */
	uint64_t waits_at_steps;
	struct checkpoint_policy policy;
	size_t means_bytes; /* that a file of what means left may have, for the probe; 0: there is none */
	/* Called for every unusable file. May be NULL. */
	void (*notice)(void *ctx, enum rv_err why, const char *text);
	void *notice_ctx;
};

/* Writes the path of a file; `round` is ignored for the replica. */
void statestore_path(const struct statestore *s, enum statestore_file kind, uint64_t round,
					 char out[STATESTORE_PATH_BYTES]);

/* ---- writing: durable when it returns RV_OK. RV_E_FULL, RV_E_IO, RV_E_NOMEM ---- */

/* Writes a snapshot. *full_hash (may be NULL) is filled whatever is returned. */
enum rv_err statestore_write_snapshot(const struct statestore *s, const struct global_state *g,
									  struct rv_hash *full_hash, struct rv_errtext *et);
/* Tests whether the disk has room for a vote: writes a file of that size and removes it. */
enum rv_err statestore_probe(const struct statestore *s, struct rv_errtext *et);
/* Writes a log entry. info->digest is filled whatever is returned. */
enum rv_err statestore_write_log(const struct statestore *s, struct state_log_info *info, const uint8_t *payload,
								 struct rv_errtext *et);
/* Bytes that are written one piece after the other. */
struct state_pieces_of {
	void *ctx;
	const void *(*next)(void *ctx, size_t *n); /* *n bytes, until the next call; NULL: no more */
};
struct state_whole {
	const void *bytes;
	size_t n; /* 0: they were taken */
};
/* Returns bytes in memory as one piece. */
struct state_pieces_of state_pieces_of_whole(struct state_whole *w);
/* Writes the replica, info->payload_bytes. If that fails, the old file stays, unless it is of a
 * later round: that one was taken back and would seem to prove later votes. RV_E_CANCELLED:
 * `payload` ended early. */
enum rv_err statestore_write_replica(const struct statestore *s, const struct state_replica_info *info,
									 const struct state_pieces_of *payload, struct rv_errtext *et);

/* Writes what encoding the means of an attempt at `round` left: `payload`, mean_residual_save(). */
enum rv_err statestore_write_means(const struct statestore *s, uint64_t round, const uint8_t *payload, size_t n,
								   struct rv_errtext *et);

/* Renames snapshot-R.part, complete and installed, to snapshot-R.rvs. RV_E_NOTFOUND: there is
 * none. */
enum rv_err statestore_adopt(const struct statestore *s, uint64_t round, struct rv_errtext *et);
/* Removes a file; RV_OK also if there is none. RV_E_IO. */
enum rv_err statestore_remove(const struct statestore *s, enum statestore_file kind, uint64_t round,
							  struct rv_errtext *et);

/* ---- reading ---- */

/* Opens a snapshot or a log entry whose header names `round`. The faults of state_file_open(); the
 * text names the file. */
enum rv_err statestore_open(const struct statestore *s, enum state_kind kind, uint64_t round, struct state_file **out,
							struct rv_errtext *et);
/* Opens the replica. The faults of replica_file_open(); the text names the file. */
enum rv_err statestore_open_replica(const struct statestore *s, struct replica_file **out, struct rv_errtext *et);
/* Lists the files by names and headers. Needs no lock: files that vanish meanwhile are left out.
 * RV_E_IO: the directory cannot be read. */
enum rv_err statestore_scan(const struct statestore *s, struct checkpoint_index *out, struct rv_errtext *et);

/* ---- recovery ---- */

/* Removes temporary files of a killed process and makes the others durable; then brings *g (at
 * theta0, round 0) to the latest round that the files prove committed (recovery_run()). Sets
 * damaged files aside. RV_E_NOMEM, RV_E_IO: *g is then unspecified. */
enum rv_err statestore_recover(const struct statestore *s, struct global_state *g, struct recovered *out,
							   struct rv_errtext *et);

/* Fills *m for a process that begins at `round` (means_recover()). Sets damaged files aside. */
void statestore_recover_means(const struct statestore *s, uint64_t round, struct mean_residual *m);

/* ---- retention: removes all that it can, whatever is returned. RV_E_IO, RV_E_NOMEM ---- */

/* Removes the files that s->policy does not keep, except those that joiners need. */
enum rv_err statestore_prune(const struct statestore *s, const struct checkpoint_named *named, struct rv_errtext *et);
/* Finds a snapshot of which an earlier process fetched a part (state_assembly.h). Returns false if
 * there is none. */
bool statestore_find_part(const struct statestore *s, uint64_t *round);
/* The fate of the files that a rollback gives up. */
enum statestore_given_up_kind {
	GIVEN_UP_NOTHING,  /* the disk had none of it */
	GIVEN_UP_KEPT,     /* it is in `dir`, with at least one snapshot */
	GIVEN_UP_KEPT_LOG, /* it is in `dir`: log entries only, usable together with the files that stayed */
	GIVEN_UP_REMOVED   /* removed: `dir` keeps an earlier rollback's snapshot of the same or a later round */
};
struct statestore_given_up {
	enum statestore_given_up_kind what;
	char dir[STATESTORE_PATH_BYTES];
};
/* Sets aside what a rollback to `round` gives up (log entries from `round` on, snapshots after it)
 * in given-up-E, where E is the `term` that ends, with run.conf and run.link, so that tools can
 * read it: it may be the last copy of that training. One such set is kept: the one with the
 * snapshot of the latest round. The replica stays: Adam's moments and the position in the data are
 * this worker's own. Durable if it returns RV_OK; otherwise files of the old term may be left, and
 * the caller must repeat the call with the same arguments. RV_E_FULL, RV_E_IO. */
enum rv_err statestore_rewind(const struct statestore *s, uint64_t round, uint64_t term,
							  struct statestore_given_up *out, struct rv_errtext *et);
/* Removes the files of a wrong history: log entries from `round` on, snapshots after it, the
 * replica, and entries before it that nothing proves. `committed` entries stay: they may be the
 * last copies. Unless it returns RV_OK, the caller must not store a later state beside them, which
 * would seem to prove them. */
enum rv_err statestore_forget_from(const struct statestore *s, uint64_t round,
								   const struct checkpoint_committed *committed, struct rv_errtext *et);

#endif
