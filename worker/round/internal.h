/* internal.h: the state behind round.h, shared by round.c (events), actions.c (what to do next),
 * sync.c (catching up from peers) and report.c. Internal to them. */
#ifndef RV_WORKER_ROUND_INTERNAL_H
#define RV_WORKER_ROUND_INTERNAL_H

#include "worker/round/round.h"

enum { ROUND_FULL_HASHES = 4 }; /* own full hashes remembered: a snapshot may be vouched for rounds after it was made */

enum trainer_state { TRAINER_IDLE, TRAINER_TRAINING, TRAINER_ENCODING, TRAINER_APPLYING };

/* Reduced bytes that the platform holds for some round: persisted before a vote, or fetched. */
struct round_log_entry {
	bool held;
	bool own; /* the result of an all-reduce with this worker: a vote */
	uint64_t round;
	uint32_t attempt; /* own: of that all-reduce */
	struct rv_hash digest;
};

/* The all-reduce of the current round, as the platform runs it. */
struct round_reduce {
	bool running;
	bool done;                /* all chunks have arrived */
	bool persist_failed;      /* disk full: cannot vote for now */
	uint32_t attempt;         /* the one that runs, or ran last */
	uint32_t persist_attempt; /* a PERSIST of it is outstanding; 0: none */
	int64_t persist_retry_us; /* after a failure: not before */
	struct grid_suspects suspects;
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

/* The snapshot to install. Kept over pauses, and while the document reaches back to it. */
struct round_snapshot {
	bool wanted;
	uint64_t round;
	struct rv_hash hash, chain;
};

/* A root that a participant is known to have signed, for `scope`. */
enum { ROUND_SIGNED = NET_MAX_ROW };
struct round_signed {
	uint32_t member;
	struct seal_scope scope;
	struct seal seal;
};

struct round_core {
	struct round_config cfg;
	uint64_t boot, seq;

	bool has_doc;
	struct document doc;

	/* This worker's state. */
	uint64_t round;
	struct rv_hash chain;
	struct participant_progress progress; /* as the trainer last reported it */
	bool time_up;                         /* these steps are all, whatever H is */
	bool starts_over;                     /* its leases were lost: the next TRAIN begins with theta */
	bool spoiled;                         /* its first contribution was unusable, and there is no other yet */
	bool encoded;                         /* the platform holds the encoded outer gradient of `round` */
	struct commitment commitment;         /* encoded: to that */
	uint64_t committed_until;             /* one more than the last round that this process has committed to; 0: none */
	uint64_t former_until;  /* round of the first document: no earlier process contributed to a later one */
	uint64_t reduced_until; /* one more than the last round that this process has begun to reduce; 0: none */
	bool contributed;       /* peers may have it, and no roster has left this worker out since */
	bool diverged;          /* this worker's state is not the run's: only a snapshot can help */
	int apply_failures;     /* of this round */
	int n_full;
	struct round_full full[ROUND_FULL_HASHES]; /* of this worker's state, the latest first */

	enum trainer_state trainer;
	struct round_log_entry log;
	struct round_reduce reduce;
	struct round_fetch fetch;
	struct round_snapshot snapshot;
	/* The last PERSIST failed, and nothing has been stored since: reports state it, and the
	 * coordinator gives this worker's part to others. */
	bool cannot_store;
	bool probing; /* a PROBE is outstanding */
	int64_t probe_us;
	bool has_part; /* of the snapshot of part_round, from an earlier process */
	uint64_t part_round;
	bool older_is_gone;    /* no donor has the entries before the document's snapshot: only that snapshot can help */
	bool snapshot_is_gone; /* no donor has the document's snapshot: only log entries can help */
	bool donor_came;       /* since then a document has named another donor: it is tried again after an entry */
	bool by_log;           /* has begun to catch up by log entries before the document's snapshot */
	bool starves;
	bool leaving, finished;
	bool paused;            /* by its owner, for a while */
	int64_t still_since_us; /* since when, or since the last KEEP_SNAPSHOT, too few have the state; 0: enough have it */
	uint64_t kept_snapshot; /* round + 1 of the last KEEP_SNAPSHOT */
	uint32_t kept_times;    /* KEEP_SNAPSHOT of that round */
	uint64_t next_term, next_term_round; /* one that began after this worker's; 0: none */
	bool asked_rollback;
	int64_t finish_by_us; /* the run is done: deadline for a majority's hash of the end state; 0: not yet */
	bool away;            /* the coordinator does not answer, since away_us */
	int64_t away_us;

	int n_signed; /* signed_roots.c */
	struct round_signed signed_by[ROUND_SIGNED];
	bool has_two_roots;
	struct equivocation two_roots;

	bool has_sent;
	bool report_soon;   /* whatever it says */
	struct report sent; /* the last report handed out */
	int64_t sent_us;
};

/* Returns the chunks that `round` exchanges; 0: not known. */
static inline uint32_t round_chunks(const struct round_core *c, uint64_t round) {
	return c->cfg.n_chunks[c->cfg.n_fragments > 0 ? round % c->cfg.n_fragments : 0];
}

/* ---- invariants.c ---- */

/* Asserts what always holds, between two calls. */
void round_check_invariants(const struct round_core *c);

/* ---- signed_roots.c ---- */

/* Returns RV_E_CORRUPT if a participant has not signed the root that the document names. */
enum rv_err round_check_signed(struct round_core *c, const struct document *d, struct rv_errtext *et);

/* ---- actions.c ---- */

/* Returns this worker's index in the current REDUCE document of the round it holds, or -1. */
int round_roster_index(const struct round_core *c);
/* Returns true if this worker holds, on disk, the result of the attempt that the current document
 * names. */
bool round_has_vote(const struct round_core *c);
/* Returns true if this worker's inner progress is in the committed mean of this round, and in
 * doubt: to count it twice would be worse than to lose it. */
bool round_contributed(const struct round_core *c);

/* Returns how many steps of the next round come before this round's outer step. */
uint64_t round_overlap(const struct round_core *c);
/* Sets *out to TRAIN of the next of these steps; returns false if they are done or under way. */
bool round_ahead_action(struct round_core *c, struct round_action *out);

/* ---- lease.c ---- */

/* Returns true if this worker holds the sequences of the next step, or the run has no leases. */
bool round_can_read(const struct round_core *c);
/* Returns true if it does not, and the contribution contains some: it is whole as it is. */
bool round_is_read_out(const struct round_core *c);
/* Returns true if the steps ahead of a committed round were read under leases that are no longer
 * this worker's. */
bool round_ahead_is_lost(const struct round_core *c);
/* Makes the contribution empty if its leases are no longer this worker's. Returns true then. */
bool round_follow_leases(struct round_core *c);

/* ---- sync.c ---- */

/* Returns true if the round is committed, its bytes have arrived, and its outer step follows the
 * overlap or is under way. */
bool round_is_entering(const struct round_core *c);
/* Returns true if this worker's state is not that of the document. */
bool round_is_behind(const struct round_core *c);
/* Returns true if `d` names a member that may give state, and the last document did not. */
bool round_names_donor(const struct round_core *c, const struct document *d);
/* Computes state_hash(round) from the document's digests; returns false if they do not reach back
 * that far. */
bool round_chain_at(const struct document *d, uint64_t round, struct rv_hash *out);
/* Returns the latest state that the disk can prove: this worker's, or with the held log entry
 * applied. A zero chain: none. */
void round_proven(const struct round_core *c, uint64_t *round, struct rv_hash *chain);
/* Returns report.needs_from. */
uint64_t round_needs_from(const struct round_core *c);
/* Sets *out to the next action of catching up; returns false if there is nothing new to ask for. */
bool round_sync_action(struct round_core *c, int64_t now_us, struct round_action *out);
/* Drops the outstanding fetch; returns true with CANCEL_FETCH in *out if there was one. */
bool round_fetch_cancel(struct round_core *c, struct round_action *out);
/* Returns true if the document is the roster of this worker's round and leaves it out. */
bool round_leaves_us_out(const struct round_core *c);
/* Adopts the state at `round`: a new round begins, with `progress`. */
void round_enter(struct round_core *c, uint64_t round, const struct rv_hash *chain,
				 const struct participant_progress *progress);

#endif
