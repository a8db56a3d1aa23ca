/* core_state.h: the state behind core.h, shared by session_core*.c: core.c (life, turns),
 * core_round.c (documents, the all-reduce, actions of the round core), core_trainer.c (the trainer's
 * answers), core_store.c (the disk), core_fetch.c (state from peers), core_end.c (how it
 * ends). Nobody else includes it. */
#ifndef RV_WORKER_SESSION_CORE_STATE_H
#define RV_WORKER_SESSION_CORE_STATE_H

#include "worker/session/core.h"

enum persist_state { PERSIST_IDLE, PERSIST_POSTED, PERSIST_AGAIN /* posted, and a later result waits */ };

/* Why it is in SAVING or later. */
enum session_why { WHY_NOT, WHY_DONE, WHY_ASKED, WHY_GIVEN_UP, WHY_ROLLED_BACK };

/* The all-reduce, as far as the links have been seen. */
struct session_reduce {
	bool running, complete;
	uint64_t round, suspects;
	uint32_t attempt;
};

/* The reduced bytes that APPLY will need. */
struct session_result {
	struct blob *bytes; /* NULL: none */
	uint64_t round;
	uint32_t attempt; /* whose they are, a vote; 0: fetched */
};

struct session_told {
	bool old_store; /* and no document was followed since */
	bool no_weights, starving;
	uint32_t missing;
};

struct session_core {
	struct session_config cfg;
	struct session_ops ops;
	struct round_core *round;

	enum session_phase phase;
	enum session_why why;
	bool asked;       /* to stop, by a person */
	bool exported;    /* the weights are written */
	bool lacks_state; /* the run starts from weights that this worker has not yet */
	enum rv_err fault;
	struct rv_errtext fault_text;
	int64_t stop_by_us, linger_until_us;
	uint64_t next_term, next_term_round; /* WHY_ROLLED_BACK */
	uint64_t given_bytes;                /* as last seen: lingering goes on while it grows */
	uint64_t roster, done_members;       /* sets: of the latest roster; seen at the end of the run */
	bool is_first;

	struct session_reduce reduce;
	struct session_result result;
	bool installing; /* a fetched state is with the trainer: it becomes this worker's, whatever is wanted by then */
	struct session_applying applying;
	uint32_t spoiled; /* contributions in a row that came to nothing */

	struct storage_health health;
	enum persist_state persist;
	bool replica_posted; /* a copy of it is with the storage thread */
	bool replica_ahead;  /* the file is of a round that was taken back: it must prove nothing any more */
	bool forget_lost;    /* an INSTALLED could not be posted: the next job says so */
	uint32_t history;    /* states installed so far: what was copied before one is of another history */

	struct session_told told;
};

/* ---- core_round.c ---- */
void session_act(struct session_core *c, int64_t now_us);
void session_see_reduce(struct session_core *c, int64_t now_us, const struct session_seen *seen);
void session_tell(const struct session_core *c, const struct session_event *e);
/* The full hash of the state that this worker holds, or held, at `round`. */
void session_full_hash(struct session_core *c, uint64_t round, const struct rv_hash *hash);

/* ---- core_store.c ---- */
void session_persist(struct session_core *c, int64_t now_us);
/* Takes one more reference; drops that to the result before. */
void session_keep_result(struct session_core *c, struct blob *bytes, uint64_t round, uint32_t attempt);
/* What becomes of the part of the snapshot of `round`. */
void session_post_installed(struct session_core *c, int64_t now_us, uint64_t round, bool ok);
/* `copy`: taken over; its handle NULL: there was no memory for it, which is told. */
void session_post_copy(struct session_core *c, int64_t now_us, const struct state_copy *copy);
void session_post(struct session_core *c, int64_t now_us, enum store_kind kind); /* EXPORT, PROBE */

/* ---- core_fetch.c ---- */
void session_fetch(struct session_core *c, int64_t now_us, const struct round_action *a);
void session_cancel_fetch(struct session_core *c);
void session_see_fetch(struct session_core *c, int64_t now_us);

/* ---- core_end.c ---- */
/* What there is is saved first, and the others are told that nobody need wait. */
void session_give_up(struct session_core *c, int64_t now_us, enum rv_err e, const char *text);
void session_finish(struct session_core *c, int64_t now_us);
void session_roll_back(struct session_core *c, int64_t now_us, const struct round_action *a);
/* A worker that has finished and is still there does nothing any more but follow a rollback; one whose trainer installs
 * a state waits for that. */
bool session_may_act(const struct session_core *c);
void session_check_end(struct session_core *c, int64_t now_us);
void session_note_roster(struct session_core *c, const struct document *d);

#endif
