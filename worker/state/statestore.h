/* statestore.h: the state files in a worker's directory: written whole or not at all, found again at start.
 *
 *     snapshot-R.rvs   theta and outer state at round R     log-R.rvl   reduced bytes of round R     replica.rvp   our own
 *     given-up-E/   snapshots and log entries that a rollback took back
 *
 * The shared state of any round is a snapshot (or theta0) plus the log entries since, replayed through global_apply. Which
 * files prove what, and which may go, checkpoint_index.h decides. Files are checked when read; a damaged one is named,
 * set aside as NAME.damaged, and the one before it used. Functions block on the disk: they are called on the storage
 * thread, or before the event loop starts. The store itself is read-only after init.
 */
#ifndef RV_WORKER_STATE_STATESTORE_H
#define RV_WORKER_STATE_STATESTORE_H

#include "worker/state/blob.h"
#include "worker/state/checkpoint_goes.h"
#include "worker/state/recovery.h"
#include "worker/state/state_file.h"
#include "worker/state/state_format.h"

enum { STATESTORE_PATH_BYTES = 320, STATESTORE_MAX_DAMAGED = 4 /* set aside; the oldest go */ };

struct statestore {
	char dir[256];
	enum statestore_theta0 theta0;
	struct global_config cfg;
	struct checkpoint_schedule schedule; /* of the run */
	/* H of a run with overlap-steps: a replica with so many steps of its round waits for the outer step. 0: none
	 * does. */
	uint64_t waits_at_steps;
	struct checkpoint_policy policy;
	/* Told of every file that cannot be used. NULL: nobody. */
	void (*notice)(void *ctx, enum rv_err why, const char *text);
	void *notice_ctx;
};

/* The path of a file; `round` is ignored for the replica. */
void statestore_path(const struct statestore *s, enum statestore_file kind, uint64_t round,
					 char out[STATESTORE_PATH_BYTES]);

/* ---- writing: durable when it returns RV_OK. RV_E_FULL, RV_E_IO, RV_E_NOMEM ---- */

/* *full_hash (NULL is fine) is filled in whatever is returned. */
enum rv_err statestore_write_snapshot(const struct statestore *s, const struct global_state *g,
									  struct rv_hash *full_hash, struct rv_errtext *et);
/* Whether the disk takes a file of the size of a log entry: writes one, and removes it. RV_E_FULL, RV_E_IO,
 * RV_E_NOMEM. */
enum rv_err statestore_probe(const struct statestore *s, struct rv_errtext *et);
/* info->digest is filled in, whatever is returned. */
enum rv_err statestore_write_log(const struct statestore *s, struct state_log_info *info, const uint8_t *payload,
								 struct rv_errtext *et);
/* When it fails, the replica before it stays, unless that is of a later round: one that was taken back, and would seem
 * to prove what is voted for from now on. */
enum rv_err statestore_write_replica(const struct statestore *s, const struct state_replica_info *info,
									 const uint8_t *payload, struct rv_errtext *et);

/* snapshot-R.part, put together and installed, becomes snapshot-R.rvs. RV_E_NOTFOUND: there is none. */
enum rv_err statestore_adopt(const struct statestore *s, uint64_t round, struct rv_errtext *et);
/* RV_OK: there is none any more. RV_E_IO. */
enum rv_err statestore_remove(const struct statestore *s, enum statestore_file kind, uint64_t round,
							  struct rv_errtext *et);

/* ---- reading ---- */

/* A snapshot or a log entry that says of itself that it is of `round`. What state_file_open() refuses; the text names
 * it. */
enum rv_err statestore_open(const struct statestore *s, enum state_kind kind, uint64_t round, struct state_file **out,
							struct rv_errtext *et);
/* *file: one reference, from which *payload borrows. RV_E_NOTFOUND, RV_E_CORRUPT, RV_E_UNSUPPORTED, RV_E_IO,
 * RV_E_NOMEM.
 */
enum rv_err statestore_read_replica(const struct statestore *s, struct state_replica_info *info, struct blob **file,
									const uint8_t **payload, struct rv_errtext *et);
/* What is there, by names and headers. Needs no lock: files that vanish meanwhile are left out. RV_E_IO: the directory
 * cannot be read. */
enum rv_err statestore_scan(const struct statestore *s, struct checkpoint_index *out, struct rv_errtext *et);

/* ---- recovery ---- */

/* Removes temporary files that a killed process left behind, and makes what is there durable; then brings *g (at
 * theta0, round 0) to the latest round that the files prove committed: recovery_run(). Sets damaged files aside.
 * RV_E_NOMEM, RV_E_IO. */
enum rv_err statestore_recover(const struct statestore *s, struct global_state *g, struct recovered *out,
							   struct rv_errtext *et);

/* ---- retention: all that can be removed is, whatever is returned. RV_E_IO, RV_E_NOMEM ---- */

/* Removes what s->policy lets go, but nothing that joiners need. */
enum rv_err statestore_prune(const struct statestore *s, const struct checkpoint_named *named, struct rv_errtext *et);
/* A snapshot that a former process has fetched a part of (worker/state/state_assembly.h); false: there is none. */
bool statestore_find_part(const struct statestore *s, uint64_t *round);
/* What became of what a rollback gives up. */
enum statestore_given_up_kind {
	GIVEN_UP_NOTHING,  /* the disk had none of it */
	GIVEN_UP_KEPT,     /* it is in `dir`, with at least one snapshot */
	GIVEN_UP_KEPT_LOG, /* it is in `dir`: log entries only, of use beside the files that stayed */
	GIVEN_UP_REMOVED   /* removed: `dir` keeps a snapshot of an earlier rollback that is not of an earlier round */
};
struct statestore_given_up {
	enum statestore_given_up_kind what;
	char dir[STATESTORE_PATH_BYTES];
};
/* Sets aside what a rollback to `round` gives up, log entries from it on and snapshots after it: in given-up-E, `term` E
 * being the one that ends, with run.conf and run.link, so that tools can read it. It may be the last copy of a
 * training that somebody wants back. One such set is kept: the one with the snapshot of the latest round. The replica
 * stays: Adam's moments and the place in the data are this worker's own. Durable when it returns RV_OK; otherwise some
 * of it is there, and must not be taken for the new term's: do it again, with the same arguments. RV_E_FULL,
 * RV_E_IO. */
enum rv_err statestore_rewind(const struct statestore *s, uint64_t round, uint64_t term,
							  struct statestore_given_up *out, struct rv_errtext *et);
/* Removes what a wrong history left behind: log entries from `round` on, snapshots after it, the replica; and entries
 * before it that nothing proves. Entries that are `committed` stay: they may be the last ones there are. Unless it
 * returns RV_OK, no later state may be stored beside them: it would seem to prove them. */
enum rv_err statestore_forget_from(const struct statestore *s, uint64_t round,
								   const struct checkpoint_committed *committed, struct rv_errtext *et);

#endif
