/* internal.h: the state behind round.h, shared by round.c (events), actions.c (what to do next),
 * sync.c (catching up from peers) and report.c. Nobody else includes it. */
#ifndef RV_WORKER_ROUND_INTERNAL_H
#define RV_WORKER_ROUND_INTERNAL_H

#include "worker/round/round.h"

enum { ROUND_FULL_HASHES = 4 }; /* own full hashes remembered: a snapshot may be vouched for rounds after it was made */

enum trainer_state { TRAINER_IDLE, TRAINER_TRAINING, TRAINER_ENCODING, TRAINER_APPLYING };

/* Reduced bytes that the platform holds for some round: persisted before a vote, or fetched. */
struct round_log_entry {
	bool held;
	bool own; /* the result of an all-reduce that we took part in: a vote */
	uint64_t round;
	uint32_t attempt; /* own: of that all-reduce */
	struct rv_hash digest;
};

/* The all-reduce of the current round, as far as the platform has been told. */
struct round_reduce {
	bool running;
	bool done;                /* all chunks are here */
	bool persist_failed;      /* disk full: cannot vote for now */
	uint32_t attempt;         /* the one that runs, or ran last */
	uint32_t persist_attempt; /* a PERSIST of it is outstanding; 0: none */
	int64_t persist_retry_us; /* after a failure: not before */
	uint64_t suspects;
};

struct round_full {
	uint64_t round;
	struct rv_hash hash;
};

struct round_fetch {
	enum round_action_type kind; /* ROUND_FETCH_SNAPSHOT, ROUND_FETCH_LOG: outstanding; ROUND_NONE: not */
	uint64_t round;
	struct rv_hash expect;
	struct rv_hash snapshot_chain; /* SNAPSHOT: state_hash(round), adopted when it is installed */
	int64_t retry_us;              /* after a failure: not before */
};

/* The snapshot that is to be installed. Remembered over pauses, and while the document reaches back to it. */
struct round_snapshot {
	bool wanted;
	uint64_t round;
	struct rv_hash hash, chain;
};

struct round_core {
	struct round_config cfg;
	uint64_t boot, seq;

	bool has_doc;
	struct document doc;

	/* What this worker holds. */
	uint64_t round;
	struct rv_hash chain;
	uint64_t steps_done, tokens;
	bool time_up;                 /* these steps are all, whatever H is */
	uint64_t ahead, ahead_tokens; /* steps of the next round, trained since this one's H were done */
	bool spoiled;                 /* its first contribution was of no use, there is no other yet */
	bool encoded;                 /* the platform holds the encoded outer gradient of `round` */
	uint64_t former_until;        /* round of the first document: a former process contributed to none that is later */
	uint64_t reduced_until;       /* one more than the last round that this process has begun to reduce; 0: none */
	bool contributed;             /* peers may have it, and no roster has left us out since */
	bool diverged;                /* our state is not the run's: only a snapshot can help */
	int apply_failures;           /* of this round */
	int n_full;
	struct round_full full[ROUND_FULL_HASHES]; /* of our own state, the latest first */

	enum trainer_state trainer;
	struct round_log_entry log;
	struct round_reduce reduce;
	struct round_fetch fetch;
	struct round_snapshot snapshot;
	/* The last PERSIST failed, and nothing has been stored since: the coordinator is told, and gives others our
	 * part. */
	bool cannot_store;
	bool probing; /* a PROBE is outstanding */
	int64_t probe_us;
	bool has_part; /* of the snapshot of part_round, from a former process */
	uint64_t part_round;
	bool older_is_gone; /* nobody has what is listed of before the document's snapshot: only that snapshot can help */
	bool by_log;        /* has begun to come by log entries of before the document's snapshot */
	bool starves;
	bool leaving, finished;
	int64_t still_since_us; /* too few have the state, since then or since the last KEEP_SNAPSHOT; 0: not so */
	uint64_t kept_snapshot; /* round + 1 of the last KEEP_SNAPSHOT */
	uint32_t kept_times;    /* KEEP_SNAPSHOT of that round */
	uint64_t next_term, next_term_round; /* one that began after ours; 0: none */
	bool told_rollback;
	int64_t finish_by_us; /* the run is done: how long a majority's word on the end state is waited for; 0: not yet */

	bool has_sent;
	struct report sent; /* the last report handed out */
	int64_t sent_us;
};

/* Chunks of what `round` exchanges; 0: not known. */
static inline uint32_t round_chunks(const struct round_core *c, uint64_t round) {
	return c->cfg.n_chunks[c->cfg.n_fragments > 0 ? round % c->cfg.n_fragments : 0];
}

/* ---- actions.c ---- */

/* The index of this worker in the current REDUCE document of the round it holds, or -1. */
int round_roster_index(const struct round_core *c);
/* True when this worker holds, on disk, the result of the attempt that the current document names. */
bool round_has_vote(const struct round_core *c);
/* Our inner progress is in the committed mean of this round, as far as we can know. When in doubt, yes: to count it
 * twice would be worse than to lose it. */
bool round_contributed(const struct round_core *c);

/* How many steps of the next round come before this one's outer step. */
uint64_t round_overlap(const struct round_core *c);
/* TRAIN of the next of these steps, or false: they are done or under way. */
bool round_ahead_action(struct round_core *c, struct round_action *out);

/* ---- sync.c ---- */

/* Our round is committed, the committed bytes are here, and its outer step comes, or is being made, behind the
 * overlap. */
bool round_is_entering(const struct round_core *c);
/* The state of this worker is not that of the document. */
bool round_is_behind(const struct round_core *c);
/* state_hash(round) as the document's digests give it; false when they do not reach that far back. */
bool round_chain_at(const struct document *d, uint64_t round, struct rv_hash *out);
/* The latest state that the disk can prove: our own, or with the log that we hold applied. A zero chain: none. */
void round_proven(const struct round_core *c, uint64_t *round, struct rv_hash *chain);
/* report.needs_from */
uint64_t round_needs_from(const struct round_core *c);
/* The next action of catching up, or false: nothing new to ask for. */
bool round_sync_action(struct round_core *c, int64_t now_us, struct round_action *out);
/* Forgets the outstanding fetch; true with CANCEL_FETCH in *out when there was one. */
bool round_fetch_cancel(struct round_core *c, struct round_action *out);
/* The document is the roster of our round, and we are not in it. */
bool round_leaves_us_out(const struct round_core *c);
/* Adopts the state at `round`: a new round begins, with what is set of steps_done and tokens. */
void round_enter(struct round_core *c, uint64_t round, const struct rv_hash *chain);

#endif
