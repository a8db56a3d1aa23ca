/* statestore.h: the state files in a worker's directory: written whole or not at all, found again at start.
 *
 *     base-R.rvs   theta and outer state at round R     log-R.rvl   reduced bytes of round R     replica.rvp   our own
 *
 * The shared state of any round is a base (or theta0) plus the log entries since, replayed through global_apply. Files
 * are checked when read; a damaged one is named and the one before it used. Functions block on the disk: they are
 * called on the storage thread, or before the event loop starts. The store itself is read-only after init.
 */
#ifndef RV_WORKER_STATESTORE_H
#define RV_WORKER_STATESTORE_H

#include "worker/blob.h"
#include "worker/state_format.h"

enum statestore_file { STATE_FILE_BASE, STATE_FILE_LOG, STATE_FILE_REPLICA };
enum { STATESTORE_PATH_BYTES = 320 };

/* Whether the state that statestore_recover() is given is theta0 of the run. */
enum statestore_theta0 {
	THETA0_OF_SEED,  /* yes: any member makes the same */
	THETA0_GIVEN,    /* yes, and who lacks it needs it from this directory: base 0 is written when there is no base */
	THETA0_IS_LACKED /* no: a base comes first, and nothing is replayed without one */
};

struct statestore {
	char dir[256];
	enum statestore_theta0 theta0;
	struct global_config cfg;
	uint64_t base_every, rounds; /* of the run: statestore_is_checked() */
	/* Told of every file that cannot be used. */
	void (*notice)(void *ctx, enum rv_err why, const char *text);
	void *notice_ctx;
};

/* The path of a file; `round` is ignored for the replica. */
void statestore_path(const struct statestore *s, enum statestore_file kind, uint64_t round,
					 char out[STATESTORE_PATH_BYTES]);

/* The full hash of the state of `round` is looked at, and a base is kept: every base_every rounds, and after the last.
 */
bool statestore_is_checked(const struct statestore *s, uint64_t round);

/* Each is durable when it returns RV_OK. RV_E_FULL, RV_E_IO. */
enum rv_err statestore_write_base(const struct statestore *s, const struct global_state *g,
								  const struct rv_hash *full_hash, struct rv_errtext *et);
enum rv_err statestore_write_replica(const struct statestore *s, const struct state_replica_info *info,
									 const uint8_t *payload, struct rv_errtext *et);

/* A whole file as it is: one that was fetched. */
enum rv_err statestore_write_file(const struct statestore *s, enum statestore_file kind, uint64_t round,
								  const struct blob *file, struct rv_errtext *et);
/* Any file as it is: RV_E_NOTFOUND, RV_E_RANGE (larger than such a file can be). *out: one reference. */
enum rv_err statestore_read(const struct statestore *s, enum statestore_file kind, uint64_t round, size_t max_bytes,
							struct blob **out, struct rv_errtext *et);

/* A log entry, checked: its header, its digest, its round. RV_E_CORRUPT; what statestore_read refuses. *file: one
 * reference, from which *payload borrows. */
enum rv_err statestore_read_log(const struct statestore *s, uint64_t round, struct blob **file,
								struct state_log_info *info, const uint8_t **payload, struct rv_errtext *et);

/* Rounds of the bases and log entries in the directory, ascending. */
enum { STATESTORE_MAX_LISTED = 4096 };
struct statestore_listing {
	uint64_t bases[STATESTORE_MAX_LISTED], logs[STATESTORE_MAX_LISTED];
	int n_bases, n_logs;
};
enum rv_err statestore_list(const struct statestore *s, struct statestore_listing *l, struct rv_errtext *et);

/* What was found at start. */
struct statestore_found {
	bool
		lacks_state; /* THETA0_IS_LACKED, and no base that can be used: *g is nothing, and nothing else was looked for */
	bool has_log;    /* a log entry of the round that *g now is at: perhaps not committed */
	struct state_log_info log;
	struct blob *log_file; /* has_log: its whole file, one reference */
	/* The full hash of the latest such state on the way to *g; full_round 0: there was none. */
	uint64_t full_round;
	struct rv_hash full_hash;
	bool has_replica;
	struct state_replica_info replica;
	struct blob *replica_file; /* has_replica: one reference */
};
/* Removes temporary files that a killed process left behind. Brings *g (at theta0, round 0) to the latest round that
 * the files prove committed: an entry is applied when it was fetched, the next one is there, or the replica was saved
 * in a later round. */
enum rv_err statestore_recover(const struct statestore *s, struct global_state *g, struct statestore_found *out,
							   struct rv_errtext *et);

/* Removes bases and log entries that neither we nor a joiner who starts at `vouched_round` will need; one older base is
 * kept in reserve. */
void statestore_prune(const struct statestore *s, uint64_t vouched_round);
/* Removes what a wrong history left behind: all log entries from `round` on, bases after it, the replica. */
void statestore_forget_from(const struct statestore *s, uint64_t round);

#endif
