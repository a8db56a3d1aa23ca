/* core_state.h: the state behind core.h, shared by session_core*.c: core.c (life, turns),
 * core_round.c (documents, the all-reduce, actions of the round core), core_trainer.c (the
 * trainer's answers), core_store.c (the disk), core_fetch.c (state from peers), core_end.c (the
 * end). Internal to them. */
#ifndef RV_WORKER_SESSION_CORE_STATE_H
#define RV_WORKER_SESSION_CORE_STATE_H

#include "worker/session/core.h"

enum persist_state { PERSIST_IDLE, PERSIST_POSTED, PERSIST_AGAIN /* posted, and a later result waits */ };

/* The reason for SAVING and later phases. */
enum session_why { WHY_NOT, WHY_DONE, WHY_ALONE, WHY_ASKED, WHY_GIVEN_UP, WHY_ROLLED_BACK };

/* The reduced bytes for the next APPLY. */
struct session_result {
	struct blob *bytes; /* NULL: none */
	struct state_log_info log;
};

/* How this process sent its last contribution. */
struct session_sent {
	uint64_t round;
	struct contribution_form form;
};

struct session_logged {
	bool old_store; /* logged, and no document was followed since */
	bool no_weights, starving, alone;
	uint32_t missing;
};

enum { SESSION_SPOILED_MAX = 3 }; /* unusable contributions in a row */

struct session_core {
	struct session_config cfg;
	struct session_ops ops;
	struct round_core *round;

	enum session_phase phase;
	enum session_why why;
	bool asked;    /* to stop, by a person */
	bool paused;   /* by a person, or what it allows */
	bool finishes; /* stops when finish_after is committed, or at finish_by_us */
	uint64_t finish_after;
	int64_t finish_by_us;
	bool exported;    /* the weights are written */
	bool lacks_state; /* the run starts from weights that this worker does not have yet */
	enum rv_err fault;
	struct rv_errtext fault_text;
	int64_t stop_by_us, linger_until_us;
	int64_t alone_until_us;              /* time at which it ends unless a donor comes; 0: it need not */
	uint64_t next_term, next_term_round; /* WHY_ROLLED_BACK */
	uint64_t given_bytes;                /* at the last look: lingering continues while it grows */
	struct member_set roster;            /* the latest one */
	struct member_set done_members;      /* seen at the end of the run */
	bool is_first;
	bool owes_evaluation; /* one is due, and its text was not here yet */

	struct session_reduce reduce; /* as last read from the links */
	struct session_result result;
	struct session_sent sent;
	bool installing; /* the trainer installs a fetched state, even if another one is wanted meanwhile */
	struct session_applying applying;
	uint32_t spoiled; /* unusable contributions in a row */

	struct storage_health health;
	enum persist_state persist;
	bool replica_posted; /* the storage thread has a copy of it */
	bool replica_ahead;  /* the file is of a round that was taken back, and must no longer prove anything */
	bool forget_lost;    /* an INSTALLED could not be posted: the next job carries a mark */
	uint32_t history;    /* states installed so far; a copy made before the last one is of another history */

	struct session_logged logged;
};

/* ---- core.c ---- */

/* Asserts what always holds, between two calls of the platform. */
void session_check_invariants(const struct session_core *c);

/* ---- core_round.c ---- */
void session_act(struct session_core *c, int64_t now_us);
void session_see_reduce(struct session_core *c, const struct session_reduce *seen);
void session_log(const struct session_core *c, const struct session_event *e);
/* Passes on the full hash of the state that this worker holds, or held, at `round`. */
void session_full_hash(struct session_core *c, uint64_t round, const struct rv_hash *hash);

/* ---- core_trainer.c ---- */
void session_ask(struct session_core *c, enum trainer_work work); /* SAVE, END, COPY_SNAPSHOT */
void session_evaluate(struct session_core *c, bool last);

/* ---- core_store.c ---- */
void session_persist(struct session_core *c, int64_t now_us);
/* Takes one more reference to the bytes of `log`, and drops the one to the earlier result. */
void session_keep_result(struct session_core *c, struct blob *bytes, const struct state_log_info *log);
/* Records that the fetched log entry of `round` could not be stored. */
void session_post_lost(struct session_core *c, int64_t now_us, uint64_t round);
/* Posts the fate of the part of the snapshot of `round`: adopted, or removed. */
void session_post_installed(struct session_core *c, int64_t now_us, uint64_t round, bool ok);
/* Posts a copy, taken over; if its handle is NULL, logs that there was no memory for it. */
void session_post_copy(struct session_core *c, int64_t now_us, const struct state_copy *copy);
void session_post(struct session_core *c, int64_t now_us, enum store_kind kind); /* EXPORT, PROBE */

/* ---- core_fetch.c ---- */
void session_fetch(struct session_core *c, int64_t now_us, const struct round_action *a);
void session_cancel_fetch(struct session_core *c);
void session_see_fetch(struct session_core *c, int64_t now_us);

/* ---- core_end.c ---- */
/* Ends with a fault, after saving and after a last report, so that rounds do not wait for this
 * worker. */
void session_give_up(struct session_core *c, int64_t now_us, enum rv_err e, const char *text);
void session_finish(struct session_core *c, int64_t now_us);
void session_roll_back(struct session_core *c, int64_t now_us, const struct round_action *a);
/* Returns false for a worker that has finished, which only follows rollbacks, and while the trainer
 * installs a state. */
bool session_may_act(const struct session_core *c);
/* Stops if that was asked for at the end of a round, and it is there. */
void session_check_finish(struct session_core *c, int64_t now_us);
void session_check_end(struct session_core *c, int64_t now_us);
void session_note_roster(struct session_core *c, const struct document *d);

#endif
