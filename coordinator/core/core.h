/* core.h: the coordinator's state, as a state machine without I/O: no sockets, no clock, no threads, no allocation, no
 * SQL.
 *
 * In: joins, reports, the time. Out: records to persist, and the run document. The order is law: a fact is announced
 * only after its record is durable. The platform asks core_next_record(), makes it durable, calls core_persisted();
 * only then does core_document() show it.
 *
 * What is decided here, and nowhere else: who is a member, who is alive, when the roster of (round, attempt) is frozen,
 * who owns which chunks, when a round is committed and over whom, which full-state hash the majority vouches for.
 *
 * A decision is a record; its effect happens when the record is durable, by the same code that replays it after a
 * restart. One decision is under way at a time. Votes, accusations and liveness are not durable: reports repeat them.
 *
 *   OPEN(r)         -> ROSTER(r, 1)     everyone alive who holds the state is ready; or min_workers are, and grace is
 *                                       over. Who is a few rounds behind and comes nearer is waited for, too, for a
 *                                       sixteenth of the time (arrivals.c)
 *   REDUCE(r, a)    -> COMMIT(r)        every available participant voted, all alike, and the voters are at least
 *                                       min(min_workers, half of the roster); the dead ones' contributions count,
 *                                       but not that of one whom an earlier roster of this round has left out and who
 *                                       was not heard of in this attempt
 *                   -> ROSTER(r, a+1)   somebody is missed (dead, accused, restarted, left, in the minority) and not
 *                                       all others have voted: the survivors keep their chunks and split the missing
 *                                       ones'
 *                   -> ROSTER(r, a+1)   of none: survivors are fewer than min_workers, and waiting cannot help:
 *                                       somebody has lost its contribution, or is missed and another process than
 *                                       was frozen, or others stand ready. Until then
 *                                       REDUCE(r, a) holds: whoever was only cut off comes back and votes.
 *   OPEN(r), round - snapshot_round == NET_MAX_LOG_DIGESTS: not frozen before a SNAPSHOT arrives.
 *   any             -> ROLLBACK(R)      only ever the operator's decision (core_rollback)
 */
#ifndef RV_COORDINATOR_CORE_H
#define RV_COORDINATOR_CORE_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"

#include <stdbool.h>
#include <stdint.h>

struct core_config {
	uint8_t run_id[NET_RUN_ID_BYTES];
	struct rv_hash run_hash;
	uint64_t final_round; /* rounds in the run */
	uint32_t min_workers; /* below: RUN_WAITING */
	uint32_t fragments;   /* round r exchanges fragment r mod so many; 0: 1 */
	/* Chunks of what each fragment's rounds exchange: it follows from the run's configuration. A member that reports
	 * another number is left out and named. */
	uint32_t n_chunks[NET_MAX_FRAGMENTS];
	/* The most tokens that a contribution can stand for, and what each round that its member missed can add to it
	 * (core_most_tokens). */
	uint64_t round_tokens, missed_tokens;
	uint64_t chunk_bytes;  /* of the longest chunk that is exchanged: deadlines follow from it (deadline.c) */
	bool weight_by_tokens; /* else every weight is 1 (base/weights.h) */
	bool equal_ownership;  /* else they follow what the members' lines carry */
	int64_t grace_us;      /* once min_workers are ready, how long the others are waited for */
	int64_t liveness_us;   /* a member without a report for so long is dead until it reports again */
	int64_t silent_us;     /* without one for so long, a round does not wait for it; well above a heartbeat */
	int64_t withheld_us; /* a participant that withholds what it owes is accused after so long (net/reduce/reduce.h) */
	/* After the first accusation in an attempt, how long others are collected; a fourth of it when all agree. */
	int64_t suspect_gather_us;
};

/* Durable facts, in the order they must become durable. Replaying all of them rebuilds the core. */
enum core_record_type { CORE_MEMBER = 1, CORE_ROSTER, CORE_COMMIT, CORE_SNAPSHOT, CORE_SEQ, CORE_ROLLBACK };
struct core_record {
	uint64_t id; /* 1, 2, 3, ... */
	uint8_t type;
	/* Once durable, documents with a seq below this may be announced. The document of a core that was just rebuilt has
	 * exactly this seq: it is a function of the records alone, so announcing it twice announces the same bytes. */
	uint64_t doc_seq;
	/* MEMBER: all that is durable about it; a later record of the same member replaces the earlier one. */
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	char addr[NET_ADDR_BYTES]; /* where it was last reached; "": it has not reported yet */
	bool banned;
	struct rv_hash token_hash; /* core_token_hash of the token it spent; zero: none */
	uint64_t term;             /* ROLLBACK: the one that begins */
	/* ROSTER, COMMIT, SNAPSHOT; ROLLBACK: the round that is open again */
	uint64_t round;
	uint32_t attempt;
	struct rv_hash digest; /* COMMIT: of the round; SNAPSHOT: the full hash at `round` */
	struct rv_hash chain;  /* COMMIT: state_hash(round + 1); SNAPSHOT: state_hash(round) */
	uint32_t n_chunks;     /* ROSTER: of what the round exchanges */
	uint16_t n_members;    /* ROSTER, COMMIT: the participants, ascending. ROSTER of none: the round is open again */
	uint32_t members[NET_MAX_MEMBERS];
	uint64_t tokens[NET_MAX_MEMBERS]; /* ROSTER, COMMIT: what each contribution stands for */
	uint64_t boots[NET_MAX_MEMBERS];  /* ROSTER: the process that holds each contribution (report.boot) */
	uint64_t rates[NET_MAX_MEMBERS];  /* ROSTER: bytes/s that its line carries; 0: not known */
	uint64_t blamed; /* ROSTER, COMMIT: set of members that the attempt before, or this one, has cost */
};

/* What a record and the store keep of a token: BLAKE2b("rivulet token" | run_id | token). */
struct rv_hash core_token_hash(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t token[NET_TOKEN_BYTES]);

struct core; /* opaque: core_size() bytes, the caller's memory */
size_t core_size(void);
struct core *core_init(void *memory, const struct core_config *cfg, int64_t now_us);
/* Rebuilds from stored records, oldest first, before anything else is called. RV_E_CORRUPT names the record. */
enum rv_err core_replay(struct core *c, const struct core_record *rec, struct rv_errtext *et);

/* A join by the holder of `key`. token_ok: the platform found the token valid and unspent (ignored for a known key).
 * On RV_OK *member is its number; the record must be durable before the platform replies (core_next_record).
 * RV_E_AUTH (unknown key, no valid token), RV_E_FULL (NET_MAX_MEMBERS), RV_E_PROTOCOL (version). */
enum rv_err core_join(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct join_request *rq,
					  bool token_ok, uint32_t *member, struct rv_errtext *et);
/* A report by the holder of `key`. Stale ones (boot, seq) are ignored. RV_E_AUTH: not a member, or banned; or the
 * sender runs beside a process of the same key with a later boot, which alone is followed: it should end. */
enum rv_err core_report(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct report *rep,
						struct rv_errtext *et);
/* What the holder of `key` should know of itself; false: nothing. */
bool core_notice(const struct core *c, const uint8_t key[NET_KEY_BYTES], struct notice *out);
/* An operator removes a member: not waited for, not in rosters, until unbanned. RV_E_NOTFOUND: no such member. */
enum rv_err core_ban(struct core *c, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et);

/* ---- when a committed round is on nobody's disk any more ---------------------------------------------------------
 *
 * Reports say what each member's disk can prove. Where nobody who is here holds the state of the current round the run
 * stands still, whatever the reason: its last holders may be switched off, or have come back without it. Only a person
 * can know that they will not come again, so only the operator takes committed rounds back: a new term begins. */
enum core_state_kept {
	CORE_STATE_HELD,   /* somebody who is here holds it; or that is not known for liveness_us yet; or nobody is here */
	CORE_STATE_ABSENT, /* nobody who is here does; of those who held it last not all have come back and caught up */
	CORE_STATE_LOST /* all who held it last have come back with less, and have reported that for liveness_us or longer */
};
struct core_kept {
	enum core_state_kept state;
	uint64_t round; /* whose state it is about */
	/* Members that held it last, as far as is known; of those who were members before this coordinator started and have
	 * not reported since it cannot be known: they count. */
	uint64_t last_held;
	uint64_t absent;     /* those of them who are not here, or have only just come back */
	uint64_t behind;     /* those of the others who still lack what somebody here has: they may hold more */
	bool has_best;       /* there is an earlier round that somebody who is here can prove: */
	uint64_t best_round; /* the latest one */
	uint64_t best_held;  /* by these members */
	/* Most of those who are here, or may come back, say that they are in a later round or term: this coordinator's
	 * store is an old copy. */
	bool ahead;
};
void core_kept(const struct core *c, struct core_kept *out);
/* The members that are here and have proven the state of this round, committed or open; 0 as well when it is so far
 * back that its state hash is not known. */
uint64_t core_holders(const struct core *c, uint64_t round);

enum { CORE_PAST_ROUNDS = 1024 }; /* how far back a rollback can go */
/* The operator takes back all rounds from `to_round` on; done when the record is durable. `force`: also when that gives
 * up rounds that somebody holds or may hold, or when nobody who is here has proven to_round. RV_E_INVALID: nothing to
 * take back, or refused without force; RV_E_RANGE: so far back is not known; RV_E_BUSY: a decision is just being made
 * durable, ask again. */
enum rv_err core_rollback(struct core *c, int64_t now_us, uint64_t to_round, bool force, struct rv_errtext *et);

/* What the connection says on which a member waits for news: it `listens`, or the other end has closed it. One that
 * neither listens nor reports for a fourth of silent_us after that is not waited for: most likely its process ended. A
 * key that is no member's: nothing happens. */
void core_listens(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens);
void core_tick(struct core *c, int64_t now_us);
int64_t core_deadline_us(const struct core *c);

bool core_next_record(struct core *c, struct core_record *out);
void core_persisted(struct core *c, uint64_t record_id, int64_t now_us);

/* The latest document that may be announced. Never NULL after init. */
const struct document *core_document(const struct core *c);

/* What people should hear of, in order; never decides anything. A ring: the oldest are lost when nobody reads. */
enum core_event_type {
	CORE_EVENT_ALIVE = 1,   /* its first report, or the first after it was dead */
	CORE_EVENT_DEAD,        /* no report for liveness_us */
	CORE_EVENT_SUSPECTED,   /* its peers get nothing from it: taken for dead until it reports again */
	CORE_EVENT_LOST,        /* restarted during the all-reduce: its contribution is gone */
	CORE_EVENT_DISAGREED,   /* its digest of (round, attempt) is not the majority's */
	CORE_EVENT_DIVERGED,    /* its full hash of `round` is not the majority's */
	CORE_EVENT_WRONG_CHAIN, /* it claims to hold `round`, with another state hash */
	CORE_EVENT_WRONG_SIZE,  /* what it would exchange has another number of chunks than the run's */
	CORE_EVENT_AHEAD,       /* it claims a later round or term than the run's; `round` is the run's */
	CORE_EVENT_NO_SNAPSHOT, /* `round` cannot be reduced before a majority vouches for a full hash; member: none */
	CORE_EVENT_SPLIT,       /* no majority for any full hash of `round`, of which all have one; member: none */
	CORE_EVENT_LEFT,        /* said good-bye */
	CORE_EVENT_ABSENT,      /* CORE_STATE_ABSENT; member: none */
	CORE_EVENT_GONE,        /* CORE_STATE_LOST; member: none */
	CORE_EVENT_HELD,        /* CORE_STATE_HELD again; member: none */
	CORE_EVENT_APART,       /* it and `other` do not reach each other: it is left out where enough others are ready */
	CORE_EVENT_SPOILED,     /* it holds the state, and trains the round again: what it had was of no use */
	CORE_EVENT_TWICE,       /* two processes have its key; the one with the earlier boot is told to end */
	CORE_EVENT_TOKENS,      /* it reports more tokens than it can have trained on: the most counts */
	CORE_EVENT_OVERDUE,  /* others have voted, it neither votes nor accuses anybody: taken for dead until it reports */
	CORE_EVENT_EXCLUDED, /* it has cost attempts again and again: in no roster before `round`, where others suffice */
	CORE_EVENT_IN_VAIN,  /* a round waited for it until grace was over: none before `round` does */
	CORE_EVENT_UNLIKE,   /* no majority of `round` has voted alike; member: none */
	CORE_EVENT_COUNT
};
struct core_event {
	uint8_t type;
	uint32_t member; /* NET_MAX_MEMBERS: none */
	uint64_t round;
	uint32_t attempt;
	uint32_t other; /* APART */
};
bool core_next_event(struct core *c, struct core_event *out);

/* For people: what the dashboard and `status` show. */
struct core_member_view {
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	bool alive, banned;
	int64_t last_report_us;
	struct report last;
	uint64_t apart;                    /* set of members that it does not reach, nor they it */
	bool left_out;                     /* rounds begin without it for that, where enough others are ready */
	uint32_t owned_chunks, all_chunks; /* in the last all-reduce since the coordinator started */
};
/* The most tokens that a contribution counts with: round_tokens, and missed_tokens for CORE_MISSED_MAX rounds. */
enum { CORE_MISSED_MAX = 8 };
uint64_t core_most_tokens(const struct core *c);
/* The rate by which a member's ownership is cut: of the slower direction of its line. 0: not known. */
uint64_t core_line_rate(const struct report *rep);
int core_members(const struct core *c, struct core_member_view out[NET_MAX_MEMBERS]);

#endif
