/* core.h: a worker's session from the moment its state is recovered until its process ends, as a state machine
 * without I/O: no sockets, no clock, no threads, no allocation. It drives the round core (worker/round/round.h), carries out
 * what that asks for through four tables of operations, and decides the rest: what is stored, kept, copied and thrown
 * away, what is told once, when a snapshot is evaluated, when the worker gives up, leaves, lingers and ends.
 *
 *   RUNNING -> EXPORTING -> LINGERING -> SAVING -> LEAVING -> ENDED
 *      |                                  ^
 *      +---- asked to stop, gave up, rolled back
 *
 * rivulet-worker (worker/session_ops.c) and the simulator (tests/sim) link this object and differ in the tables only.
 * Operations are called from inside session_core_* and must not call back into it: what they begin is answered later,
 * through session_core_on_*(), in the order in which it was begun.
 *
 * The answers of the trainer come in the order of its requests; a TRAIN that is stopped by another request is answered
 * before that. The answers of the disk come in the order of its jobs. */
#ifndef RV_WORKER_SESSION_CORE_H
#define RV_WORKER_SESSION_CORE_H

#include "worker/round/round.h"
#include "worker/session/storage_health.h"
#include "worker/state/recovery.h"
#include "worker/state/store_job.h"
#include "worker/trainer/apply.h"

enum session_phase {
	SESSION_RUNNING,
	SESSION_EXPORTING, /* the run is done: the last evaluation, then the weights */
	SESSION_LINGERING, /* done; peers may still need what this worker has */
	SESSION_SAVING,    /* ends: until the replica is with the disk */
	SESSION_LEAVING,   /* saved: until the disk is done and the good-bye was heard */
	SESSION_ENDED
};

/* ---- what is told to people ---- */

enum session_event_type {
	SESSION_SAYS_WRONG_STATE,    /* text: this worker's state is not the run's; it goes back to a snapshot of peers */
	SESSION_SAYS_OLD_STORE,      /* text, document: the coordinator has an old copy of the run. Once */
	SESSION_SAYS_REFUSED,        /* err, text: a document that contradicts what this worker knows */
	SESSION_SAYS_ALONE,          /* round: the run is done, and nobody is there to give this worker what it lacks */
	SESSION_SAYS_NO_WEIGHTS,     /* nobody is there who has the weights that the run starts from. Once */
	SESSION_SAYS_STARVING,       /* document: the run moves faster than this worker catches up. Once */
	SESSION_SAYS_MISSING,        /* n workers are missing for a round; 0: enough are there. When it changes */
	SESSION_SAYS_ATTEMPT,        /* document: the all-reduce of this attempt begins */
	SESSION_SAYS_SUSPECTS,       /* round, attempt, set: participants that are silent. When it changes */
	SESSION_SAYS_FETCHING,       /* id */
	SESSION_SAYS_FETCH_FAILED,   /* id, err, text: given up until it is wanted again */
	SESSION_SAYS_IN_MEMORY,      /* text: the disk does not take what was fetched. Once */
	SESSION_SAYS_FETCHED_STORED, /* it takes it again */
	SESSION_SAYS_FETCHED_OVER,   /* a checkpoint is stored: what was fetched before is not needed after a restart */
	SESSION_SAYS_SPOILED,        /* round, n in a row, text: theta_local came to nothing */
	SESSION_SAYS_STANDSTILL,     /* round: the state is written anew for those that lack it */
	SESSION_SAYS_STORAGE_FAILS,  /* kind, err, text. Once */
	SESSION_SAYS_STORAGE_WORKS,  /* kind, n times it did not */
	SESSION_SAYS_FULL_HASH,      /* round, hash: of the own state, about to be compared with the majority's */
	SESSION_SAYS_DONE,           /* the run is done; n: 0 unless a majority vouches for the end state */
	SESSION_SAYS_EXPORTED,       /* hash: the weights are stored; text: a warning, or empty */
	SESSION_SAYS_STOPPING,       /* n: 0 where the run is done */
	SESSION_SAYS_ROLLBACK,       /* round, term: the run was rolled back; this worker starts again there */
	SESSION_SAYS
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
	/* Steps [from, from + steps) of `round`: the shared state's, or the next one's, ahead. */
	void (*train)(void *ctx, uint64_t round, uint64_t from, uint64_t steps);
	/* `want_replica`: a copy of it comes with the answer. */
	void (*encode)(void *ctx, uint64_t round, bool want_replica);
	void (*apply)(void *ctx, const struct trainer_apply *rq);
	/* `snapshot` (the platform's own, taken over; NULL: theta0) becomes the state, if it is `expect`. */
	void (*install)(void *ctx, uint64_t round, void *snapshot, const struct rv_hash *expect);
	void (*copy_snapshot)(void *ctx);
	/* Measures the held-out loss. `last`: of the run's end. */
	void (*evaluate)(void *ctx, bool last);
	void (*save)(void *ctx); /* stops training, copies the replica */
	void (*end)(void *ctx);  /* the same, and no evaluation is worth waiting for any more */
	bool (*idle)(void *ctx); /* nothing is under way, and all was answered */
};

/* The directory, on the storage thread. */
struct session_disk_ops {
	/* Copies *job. false: there is no memory for that; then nothing was taken over. */
	bool (*post)(void *ctx, const struct store_job *job);
	/* Frees what the job refers to: the copies, the reference to the reduced bytes. */
	void (*release)(void *ctx, struct store_job *job);
	bool (*idle)(void *ctx); /* nothing is under way, and all was answered */
};

/* Other workers. */
struct session_links_ops {
	/* Who may be dialed, asked, and heard: a document was adopted. */
	void (*allow)(void *ctx, const struct document *d);
	/* The all-reduce of d->round begins, from what was encoded last. */
	enum rv_err (*reduce_start)(void *ctx, const struct document *d, struct rv_errtext *et);
	void (*reduce_restart)(void *ctx, const struct document *d); /* the same round, a later attempt */
	void (*reduce_stop)(void *ctx);
	struct blob *(*result)(void *ctx); /* a copy of the reduced bytes, one reference; NULL: no memory */
	/* ids[0] is waited for, ids[1] is needed next; n 0: nothing is wanted any more, which cannot fail. */
	enum rv_err (*want)(void *ctx, const struct state_id *ids, int n, struct rv_errtext *et);
	bool (*nowhere)(void *ctx); /* nobody who can be asked has the file that is wanted */
	void (*forget)(void *ctx, enum state_kind kind, uint64_t round); /* this file is another one now */
	void (*forget_all)(void *ctx);
	uint64_t (*askers)(void *ctx);      /* the set of members that have asked for state */
	uint64_t (*given_bytes)(void *ctx); /* of state, since the start */
};

/* The coordinator, and people. */
struct session_control_ops {
	void (*report)(void *ctx, struct report *r); /* fills in the fields for people, and sends it until it is heard */
	bool (*reported)(void *ctx);                 /* the last report was heard */
	void (*tell)(void *ctx, const struct session_event *e); /* what `e` points to is valid until it returns */
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
	/* The replica's file is that of a round's encoding, not of its outer step: steps ahead or a residual depend on it
	 * (docs/decisions/0019, 0020). */
	bool saves_encodings;
	int64_t eval_every; /* rounds; 0: never before the end */
	bool eval_at_end;
	int64_t linger_us;  /* a finished worker stays so long for peers that lack what it has, since it last gave some */
	int64_t goodbye_us; /* how long the last report may take */
};

/* What recovery has found, and where the replica stands. */
struct session_start {
	void *round_memory; /* round_core_size() bytes, the caller's */
	struct round_config round;
	uint64_t boot;
	uint64_t at_round; /* of the shared state */
	struct rv_hash chain;
	uint64_t steps_done, tokens;
	const struct recovered *found; /* found->reduced: its reference is taken over */
	bool has_part;                 /* a former process has fetched a part of the snapshot of part_round */
	uint64_t part_round;
};

struct session_core; /* opaque: session_core_size() bytes, the caller's memory */
size_t session_core_size(void);

/* `ops` is copied. Calls operations: everything in the tables must be ready. */
struct session_core *session_core_init(void *memory, const struct session_config *cfg, const struct session_ops *ops,
									   const struct session_start *start, int64_t now_us);
/* Drops what it holds. */
void session_core_release(struct session_core *c);

/* A verified, decoded document. Returns true if it was adopted: it is newer, and does not contradict what this worker
 * knows so that it must be refused. */
bool session_core_on_document(struct session_core *c, int64_t now_us, const struct document *d);
/* A document that is older than what this worker has followed (`text`): from an old copy of the coordinator's store. */
void session_core_on_older(struct session_core *c, const struct document *d, const char *text);

/* The trainer's answers. `copy`: taken over. */
struct session_trained {
	uint64_t round, steps_done, tokens; /* totals: round_on_trained() */
	bool time_up;                       /* the run's round_ms are over */
	enum rv_err err; /* RV_E_RANGE: no finite loss; theta_local of the shared state's round is theta */
	const char *text;
};
void session_core_on_trained(struct session_core *c, int64_t now_us, const struct session_trained *t);
/* Anything but RV_OK: nothing of it is of use, and theta_local is theta. copy: NULL where none was asked for. */
void session_core_on_encoded(struct session_core *c, int64_t now_us, uint64_t round, enum rv_err e, const char *text,
							 const struct state_copy *copy);
/* RV_OK: the shared state is at round + 1. */
void session_core_on_applied(struct session_core *c, int64_t now_us, uint64_t round, enum rv_err e,
							 const struct rv_hash *chain, const struct state_copy *copy);
void session_core_on_installed(struct session_core *c, int64_t now_us, uint64_t round, enum rv_err e);
void session_core_on_evaluated(struct session_core *c, int64_t now_us, bool last);
void session_core_on_saved(struct session_core *c, int64_t now_us, const struct state_copy *copy); /* save, end */
void session_core_on_snapshot(struct session_core *c, int64_t now_us,
							  const struct state_copy *copy); /* copy_snapshot */

/* The disk's answer: the job that was posted, done. Calls disk.release of it. */
void session_core_on_stored(struct session_core *c, int64_t now_us, struct store_job *j);

/* What links.want asked for is whole, and durable unless `warning` says why not. `snapshot`: taken over. `log`: one
 * reference, the caller's. */
void session_core_on_fetched(struct session_core *c, int64_t now_us, const struct state_id *id, void *snapshot,
							 struct blob *log, const char *warning);
/* It is given up until it is wanted again: the own disk or memory does not take it. */
void session_core_on_fetch_failed(struct session_core *c, int64_t now_us, const struct state_id *id, enum rv_err e,
								  const char *text);

/* What links say of themselves. */
struct session_seen {
	bool reducing, reduced; /* an all-reduce runs; all its chunks are here */
	uint64_t reduce_round, suspects;
	uint32_t reduce_attempt;
};
/* Does whatever there is to do: after every event, and at session_core_deadline_us(). */
void session_core_turn(struct session_core *c, int64_t now_us, const struct session_seen *seen);
int64_t session_core_deadline_us(const struct session_core *c, int64_t now_us);

/* Saves, says good-bye and ends; a finished worker ends at once. */
void session_core_stop(struct session_core *c, int64_t now_us);
/* Ends at once: nothing more can be done. The first fault counts. */
void session_core_fail(struct session_core *c, enum rv_err e, const char *text);

/* ---- queries ---- */

enum session_phase session_core_phase(const struct session_core *c);
const struct round_core *session_core_round(const struct session_core *c);
/* Why it ends: RV_OK: as it should. */
enum rv_err session_core_fault(const struct session_core *c, struct rv_errtext *text);
/* The run was rolled back, and this worker ended to start again there: the disk is to forget what came after. */
bool session_core_rolled_back(const struct session_core *c, uint64_t *round, uint64_t *term);
bool session_core_exported(const struct session_core *c); /* the weights are written */
bool session_core_storage_fails(const struct session_core *c);
uint32_t session_core_missing_workers(const struct session_core *c);
/* This worker is the first of the latest roster: the one that evaluates. */
bool session_core_is_first(const struct session_core *c);

/* The outer step that was asked for last. */
struct session_applying {
	bool participated; /* this worker's gradient is in the mean */
	bool kept;         /* inner progress is kept over it */
	uint32_t attempt;  /* whose result it is; 0: fetched */
};
struct session_applying session_core_applying(const struct session_core *c);

#endif
