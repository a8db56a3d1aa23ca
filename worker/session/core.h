/* core.h: a worker's session from the moment its state is recovered until its process ends, as a
 * state machine without I/O: no sockets, no clock, no threads, no allocation. It drives the round
 * core (worker/round/round.h), executes its actions through four tables of operations, and decides
 * the rest: what is stored, kept, copied and discarded, which events are logged once, when a
 * snapshot is evaluated, when the worker gives up, leaves, lingers and ends.
 *
 *   RUNNING -> EXPORTING -> LINGERING -> SAVING -> LEAVING -> ENDED
 *      |                                  ^
 *      +---- asked to stop, gave up, rolled back, alone at the end of the run
 *
 * rivulet-worker (worker/session/{trainer,disk,links,control}.c) and the simulator (tests/sim) link
 * this object and differ in the tables only. Operations are called from inside session_core_* and
 * must not call back into it: the platform answers later, through session_core_on_*(), in the order
 * in which the operations were called.
 *
 * The answers of the trainer come in the order of its requests, those of the disk in the order of
 * its jobs. */
#ifndef RV_WORKER_SESSION_CORE_H
#define RV_WORKER_SESSION_CORE_H

#include "net/member_set.h"
#include "worker/round/round.h"
#include "worker/session/storage_health.h"
#include "worker/state/recovery.h"
#include "worker/state/store_job.h"
#include "worker/trainer/request.h"

enum session_phase {
	SESSION_RUNNING,
	SESSION_EXPORTING, /* the run is done: the last evaluation, then the weights */
	SESSION_LINGERING, /* done; peers may still need what this worker has */
	SESSION_SAVING,    /* ends: until the storage thread has the replica */
	SESSION_LEAVING,   /* saved: until the disk is done and the coordinator has the last report */
	SESSION_ENDED
};

/* ---- events for the log ---- */

enum session_event_type {
	SESSION_LOGS_WRONG_STATE,    /* text: this worker's state is not the run's; it fetches a snapshot */
	SESSION_LOGS_OLD_STORE,      /* text, document: the coordinator has an old copy of the run. Once */
	SESSION_LOGS_REFUSED,        /* err, text: a document that contradicts what this worker knows */
	SESSION_LOGS_ALONE,          /* round, document: the run is done, and nobody has what this one lacks. Once */
	SESSION_LOGS_NO_WEIGHTS,     /* no connected worker has the weights that the run starts from. Once */
	SESSION_LOGS_STARVING,       /* document: the run moves faster than this worker catches up. Once */
	SESSION_LOGS_MISSING,        /* n workers are missing for a round; 0: none. When it changes */
	SESSION_LOGS_ATTEMPT,        /* document: the all-reduce of this attempt begins */
	SESSION_LOGS_SUSPECTS,       /* round, attempt, n: silent participants. When they change */
	SESSION_LOGS_FETCHING,       /* id */
	SESSION_LOGS_FETCH_FAILED,   /* id, err, text: stopped until it is wanted again */
	SESSION_LOGS_IN_MEMORY,      /* text: a fetched file cannot be stored. Once */
	SESSION_LOGS_FETCHED_STORED, /* fetched files are stored again */
	SESSION_LOGS_FETCHED_OVER,   /* a checkpoint is stored: fetched files are not needed after a restart */
	SESSION_LOGS_SPOILED,        /* round, n in a row, text: theta_local is unusable */
	SESSION_LOGS_LEASE_LOST,     /* round: the sequences of its contribution were given to others; it starts over */
	SESSION_LOGS_STANDSTILL,     /* round: the state is written again for workers that lack it */
	SESSION_LOGS_STORAGE_FAILS,  /* kind, err, text. Once */
	SESSION_LOGS_STORAGE_WORKS,  /* kind, n: failures before */
	SESSION_LOGS_FULL_HASH,      /* round, hash: of this worker's state, before it is compared with the majority's */
	SESSION_LOGS_DONE,           /* the run is done; n: not 0 if a majority vouches for the end state */
	SESSION_LOGS_EXPORTED,       /* hash: the weights are stored; text: a warning, or empty */
	SESSION_LOGS_STOPPING,       /* n: 0 if the run is done */
	SESSION_LOGS_ROLLBACK,       /* round, term: the run was rolled back; this worker starts again there */
	SESSION_EVENTS
};

struct session_event {
	enum session_event_type type;
	uint64_t round, term, set;
	uint32_t attempt, n;
	enum store_kind kind;
	enum rv_err err;
	const char *text;
	const struct document *document;
	const struct state_id *id;
	const struct rv_hash *hash;
};

/* ---- the four tables. `ctx` is the platform's ---- */

/* The replica, on its own thread. */
struct session_trainer_ops {
	void (*request)(void *ctx, const struct trainer_request *rq);
	bool (*idle)(void *ctx); /* returns true if nothing is under way and all is answered */
	/* Returns true if an evaluation need not wait for its text. One that would is put off to a
	 * later round, as training would wait behind it; the last one is not. */
	bool (*may_evaluate)(void *ctx);
};

/* The directory, on the storage thread. */
struct session_disk_ops {
	/* Posts a copy of *job. Returns false, and takes nothing over, if there is no memory. */
	bool (*post)(void *ctx, const struct store_job *job);
	/* Frees the job's copies and drops its reference to the reduced bytes. */
	void (*release)(void *ctx, struct store_job *job);
	bool (*idle)(void *ctx); /* returns true if nothing is under way and all is answered */
};

/* Other workers. */
struct session_links_ops {
	/* Applies an adopted document's members and bans to the links. */
	void (*allow)(void *ctx, const struct document *d);
	/* Ends all links and lets none come about, or allows them again; `allow` follows. No all-reduce
	 * and no fetch is under way. */
	void (*pause)(void *ctx, bool paused);
	/* Starts the all-reduce of d->round with the last encoded contribution. */
	enum rv_err (*reduce_start)(void *ctx, const struct document *d, struct rv_errtext *et);
	/* Starts a later attempt of the same round. */
	enum rv_err (*reduce_restart)(void *ctx, const struct document *d, struct rv_errtext *et);
	void (*reduce_stop)(void *ctx);
	struct blob *(*result)(void *ctx); /* returns a copy of the reduced bytes, one reference; NULL: no memory */
	/* Residual of the means that this worker makes (outer/mean_residual.h). means_left: sets *out
	 * to what the attempt left, one reference, or NULL if nothing is kept; returns false if there
	 * is no memory. means_commit: `round` is committed with the result of `attempt` (0: fetched).
	 * means_forget: the state was replaced. */
	bool (*means_left)(void *ctx, struct blob **out);
	void (*means_commit)(void *ctx, uint64_t round, uint32_t attempt);
	void (*means_forget)(void *ctx);
	/* Fetches ids[0], and ids[1] ahead; n == 0 ends fetching and cannot fail. */
	enum rv_err (*want)(void *ctx, const struct state_id *ids, int n, struct rv_errtext *et);
	bool (*nowhere)(void *ctx); /* returns true if no reachable donor has the wanted file */
	void (*forget)(void *ctx, enum state_kind kind, uint64_t round); /* closes a file that was replaced on disk */
	void (*forget_all)(void *ctx);
	const struct member_set *(*askers)(void *ctx); /* returns the members that have asked for state */
	uint64_t (*given_bytes)(void *ctx);            /* returns the bytes of state given since the start */
};

/* The coordinator, and people. */
struct session_control_ops {
	void (*report)(void *ctx, struct report *r); /* fills the fields for people, and sends it until it is received */
	bool (*reported)(void *ctx);                 /* returns true if the coordinator has received the last report */
	void (*log)(void *ctx, const struct session_event *e); /* logs `e`, which is valid until the return */
};

struct session_ops {
	void *ctx;
	struct session_trainer_ops trainer;
	struct session_disk_ops disk;
	struct session_links_ops links;
	struct session_control_ops control;
};

/* ---- the core ---- */

struct session_config {
	uint32_t member;
	uint64_t rounds;
	uint32_t min_workers;
	struct checkpoint_schedule schedule;
	/* The replica's file is that of a round's encoding, not of its outer step: steps ahead or a
	 * residual depend on it (docs/decisions/0019, 0020). */
	bool saves_encodings;
	int64_t eval_every; /* rounds; 0: never before the end */
	bool eval_at_end;
	bool has_leases; /* the trainer reads what the document leases */
	uint64_t eval_tokens;
	int64_t linger_us;  /* a finished worker stays for peers this long after it last gave them state */
	int64_t alone_us;   /* at the end of the run a worker that is behind waits this long for a donor */
	int64_t goodbye_us; /* most time for the last report */
};

/* The result of recovery, and the replica's position. */
struct session_start {
	void *round_memory; /* round_core_size() bytes, the caller's */
	struct round_config round;
	uint64_t boot;
	uint64_t at_round; /* of the shared state */
	struct rv_hash chain;
	struct participant_progress progress;
	const struct recovered *found; /* the reference found->reduced is taken over */
	bool has_part;                 /* an earlier process fetched a part of the snapshot of part_round */
	uint64_t part_round;
};

struct session_core; /* opaque: session_core_size() bytes of the caller's memory */
size_t session_core_size(void);

/* Initializes a core; copies `ops`, and calls them: the tables must be ready. */
struct session_core *session_core_init(void *memory, const struct session_config *cfg, const struct session_ops *ops,
									   const struct session_start *start, int64_t now_us);
/* Drops the core's references. */
void session_core_release(struct session_core *c);

/* Takes a verified, decoded document. Returns true if it was adopted: it is newer and need not be
 * refused. */
bool session_core_on_document(struct session_core *c, const struct document *d);
/* Takes a document older than what this worker has followed (`text`): the coordinator was restored
 * from an old backup. */
void session_core_on_older(struct session_core *c, const struct document *d, const char *text);

/* Takes the trainer's answer, and the copies in it. */
void session_core_on_answer(struct session_core *c, int64_t now_us, const struct trainer_answer *a);

/* Takes a finished job back from the disk, and calls disk.release. */
void session_core_on_stored(struct session_core *c, int64_t now_us, struct store_job *j);

/* Takes a file that links.want asked for; it is durable unless `warning` states why not.
 * `snapshot`: taken over. `log`: one reference, which the caller keeps. */
void session_core_on_fetched(struct session_core *c, int64_t now_us, const struct state_id *id, void *snapshot,
							 struct blob *log, const char *warning);
/* Takes a log entry that was no longer wanted while it was being written, and is on the disk now.
 * `log`: as above. */
void session_core_on_stored_late(struct session_core *c, const struct state_id *id, struct blob *log);
/* Reports that a fetch failed on this worker's disk or memory; it ends until it is wanted again. */
void session_core_on_fetch_failed(struct session_core *c, int64_t now_us, const struct state_id *id, enum rv_err e,
								  const char *text);

/* The state of the all-reduce, read from the links. */
struct session_reduce {
	bool running, complete; /* complete: all its chunks have arrived */
	uint64_t round;
	uint32_t attempt;
	struct grid_suspects suspects;
	struct contribution_form form; /* of this worker's contribution; the links need not say it */
};
/* Does what is due; called after every event, and at session_core_deadline_us(). */
void session_core_turn(struct session_core *c, int64_t now_us, const struct session_reduce *seen);
int64_t session_core_deadline_us(const struct session_core *c, int64_t now_us);

/* Reports that the coordinator does not answer, or answers again (round_on_away). */
void session_core_on_away(struct session_core *c, int64_t now_us, bool away);
/* Makes a report due: what the platform adds to it has changed. */
void session_core_report_soon(struct session_core *c);
/* Saves, sends a last report and ends; a finished worker ends at once. */
void session_core_stop(struct session_core *c, int64_t now_us);
/* Does so once the round under way is committed, at `by_us` at the latest (INT64_MAX: no limit), or
 * at once while it is paused. The latest call counts. */
void session_core_finish(struct session_core *c, int64_t now_us, int64_t by_us);
/* Pauses, or ends a pause (round_pause): the links are gone meanwhile, and rounds go on without
 * this worker. Without effect on one that has finished or ends. */
void session_core_pause(struct session_core *c, int64_t now_us, bool paused);
/* Ends at once, without saving. The first fault counts. */
void session_core_fail(struct session_core *c, enum rv_err e, const char *text);

/* ---- queries ---- */

enum session_phase session_core_phase(const struct session_core *c);
const struct round_core *session_core_round(const struct session_core *c);
/* Returns why the core ends; RV_OK: as planned. */
enum rv_err session_core_fault(const struct session_core *c, struct rv_errtext *text);
/* Returns true if the run was rolled back and this worker ended to restart there: the platform must
 * remove later files. */
bool session_core_rolled_back(const struct session_core *c, uint64_t *round, uint64_t *term);
bool session_core_exported(const struct session_core *c);  /* returns true once the weights are written */
bool session_core_was_alone(const struct session_core *c); /* it ends as nobody gives it the end of the run */
bool session_core_storage_fails(const struct session_core *c);
bool session_core_disk_is_full(const struct session_core *c); /* the reason, or one of them */
bool session_core_is_paused(const struct session_core *c);
bool session_core_finishes(const struct session_core *c); /* session_core_finish was called */
uint32_t session_core_missing_workers(const struct session_core *c);
/* Returns true if this worker is the first of the latest roster, which evaluates. */
bool session_core_is_first(const struct session_core *c);

/* The last outer step that was asked for. */
struct session_applying {
	bool participated; /* this worker's gradient is in the mean */
	bool kept;         /* inner progress is kept */
	uint32_t attempt;  /* the attempt whose result it is; 0: fetched */
};
struct session_applying session_core_applying(const struct session_core *c);

#endif
