/* core.h: the coordinator's state, as a state machine without I/O: no sockets, no clock, no
 * threads, no allocation, no SQL.
 *
 * In: joins, reports, the time. Out: records to persist, and the run document. A fact is announced
 * only after its record is durable: the platform calls core_next_record(), makes the record
 * durable, calls core_persisted(), and only then does core_document() show the fact.
 *
 * The core alone decides membership, liveness, when the roster of (round, attempt) is frozen, the
 * ownership of chunks, when a round is committed and over which participants, and which full hash
 * the majority vouches for.
 *
 * A decision is a record; its effect happens when the record is durable, by the same code that
 * replays it after a restart. One decision is under way at a time. Votes, accusations and liveness
 * are not durable: reports repeat them.
 *
 *   OPEN(r)         -> ROSTER(r, 1)     all alive members that hold the state are ready; or
 *                                       min_workers are, and grace is over. A member that is a few
 *                                       rounds behind and catches up is waited for during a
 *                                       sixteenth of the time (arrivals.c)
 *   REDUCE(r, a)    -> COMMIT(r)        every available participant voted, all alike, and the
 *                                       voters are at least min(min_workers, half of the roster).
 *                                       Contributions of dead participants count, except of one
 *                                       that an earlier roster of this round left out and that has
 *                                       not reported in this attempt
 *                   -> ROSTER(r, a+1)   a participant is missed (dead, accused, restarted, left,
 *                                       in the minority) and not all others have voted: the
 *                                       survivors keep their chunks and split those of the missed
 *                   -> ROSTER(r, a+1)   of none: survivors are fewer than min_workers, and waiting
 *                                       cannot help: a contribution is lost, or a missed
 *                                       participant runs another process than was frozen, or other
 *                                       members are ready. Until then REDUCE(r, a) holds: a
 *                                       participant that was only cut off returns and votes.
 *   OPEN(r), round - snapshot_round == NET_MAX_LOG_DIGESTS: not frozen before a SNAPSHOT arrives.
 *   any             -> ROLLBACK(R)      only the operator decides it (core_rollback)
 *
 * Members. A member's number is given once and never again; numbers have no bound. In memory are
 * max_here members at most, each in a *slot*: those that are here, and those that were. If a joiner
 * or a member that returns needs a slot and none is free, the one silent for longest that has
 * nothing under way gives up its own: an AWAY record says all that is durable about it, and the
 * store has it by its key until it returns (core_return). Slots are for arrays beside the core and
 * for sets; what people, workers and records read are numbers. A slot is one member's until it is
 * AWAY. */
#ifndef RV_COORDINATOR_CORE_H
#define RV_COORDINATOR_CORE_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "base/slow_lines.h"
#include "coordinator/core/set.h"
#include "net/control/control.h"
#include "net/control/evidence.h"

#include <stdbool.h>
#include <stdint.h>

enum { CORE_HERE_WORDS = SET_WORDS(NET_MAX_HERE), CORE_ROSTER_WORDS = SET_WORDS(NET_MAX_ROSTER) };

struct core_config {
	uint32_t max_here;   /* members in memory, 1..NET_MAX_HERE: core_size grows with it */
	uint32_t max_roster; /* participants of a round, 1..NET_MAX_ROSTER, at most max_here */
	uint32_t row_size;   /* participants of one row, 2..NET_MAX_ROW (base/rows.h); 0: NET_MAX_ROW */
	uint8_t run_id[NET_RUN_ID_BYTES];
	struct rv_hash run_hash;
	uint64_t final_round; /* rounds in the run */
	uint32_t min_workers; /* below: RUN_WAITING */
	uint32_t fragments;   /* round r exchanges fragment r mod this number; 0: 1 */
	/* Chunks of each fragment, by the run's configuration. A member that reports another number is
	 * left out and named. */
	uint32_t n_chunks[NET_MAX_FRAGMENTS];
	/* The most tokens of a contribution, and what each round that its member missed can add
	 * (core_most_tokens). */
	uint64_t round_tokens, missed_tokens;
	/* Sequences that a member reads in a round, and tokens of each: which member reads which is
	 * leased (leases.c). 0: members bring their text. */
	uint64_t lease_round, lease_tokens;
	/* Sequences by which a contribution may have read more than tokens of that many rounds explain:
	 * batches that were refused. */
	uint64_t lease_slack;
	/* Bytes of the longest chunk as it is exchanged, and of its partial sum in a roster of several
	 * rows at most. Deadlines follow from them (deadline.c). */
	uint64_t chunk_bytes, sum_bytes;
	bool weight_by_tokens; /* else every weight is 1 (base/weights.h) */
	bool keeps_owners;     /* from round to round, as far as shares allow: owners keep what their means lost */
	bool equal_ownership;  /* else ownership follows the members' bandwidth */
	/* Policy for members whose lines cannot make the deadline of an exchange (base/slow_lines.h):
	 * enum run_slow_members. */
	int slow_members;
	int64_t slow_deadline_us;                    /* 0: from the lines */
	uint64_t sent_chunk_bytes, mean_chunk_bytes; /* of a contribution and a mean, as chunk_bytes */
	/* SLOW_COARSER: ids of codecs, each coarser than the one before, and their chunk_bytes. */
	int n_slow_codecs;
	uint8_t slow_codecs[SLOW_LINES_STEPS];
	uint64_t slow_chunk_bytes[SLOW_LINES_STEPS];
	int64_t grace_us;    /* once min_workers are ready, how long a round waits for the others */
	int64_t liveness_us; /* a member without a report for this time is dead until it reports again */
	int64_t silent_us;   /* without one for this time, rounds do not wait for it; well above a heartbeat */
	int64_t withheld_us; /* a participant that withholds what it owes is accused after this time (reduce.h) */
	/* After the first accusation in an attempt, how long others are collected; a fourth of it if
	 * all agree. */
	int64_t suspect_gather_us;
	/* Audits of averages (audits.c): chunks of each round; 0: none. Rounds within which an audit
	 * ends, at most CORE_AUDIT_ROUNDS. Whether a lie that is proven takes the run back. */
	uint32_t audit_chunks, audit_window;
	bool audit_rollback;
	/* Audits of training (scores.c), in a run with leases: millionths of the roster's training that
	 * scoring may cost; 0: none. */
	uint32_t audit_ppm;
	uint32_t repeat_ppm;         /* millionths of these audits that repeat the author's steps; 0: none */
	uint64_t inner_bytes;        /* of an inner state, which such an audit moves */
	uint32_t probation;          /* committed rounds after which a member has its full weight; 0: at once */
	struct rv_hash audit_secret; /* nobody else's, and the same after a restart: rounds' secrets follow from it */
	struct seal_ops seals;       /* checks seals (net/seal.h); verify NULL: the majority of votes decides */
	/* The operator's, for documents; the same as long as the process lives. */
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS];
};

enum core_strike_reason {
	CORE_STRIKE_NONE,
	CORE_STRIKE_WITHHELD,
	CORE_STRIKE_FALSE_AUDIT,
	CORE_STRIKE_TRAINING,
	CORE_STRIKE_EVADED,
	CORE_STRIKE_REASONS
};
enum { CORE_EVADED_MAX = 2 };
enum { CORE_STRIKES_MAX = 3, CORE_FOUND_TO_BAN = 3 }; /* one more bans, if so many auditors found it */
/* The merits of a member, and what audits cost it (reputation.c). */
struct core_reputation {
	uint32_t rounds;  /* committed ones with its contribution, since it joined or its last strike */
	uint32_t audited; /* the first ones of them, up to the last that an audit found worthy; while it is on probation */
	uint8_t strikes;
	uint8_t reason;             /* of the last strike that was not lifted; of the last one if all were */
	bool appealed;              /* another look at the last strike is over: there is no second one */
	uint64_t struck_round;      /* that was audited then */
	uint64_t quarantined_until; /* first round that may have it again; 0: no strike yet, or the only one was lifted */
	uint64_t until_before;      /* that before the last strike; valid again if this is lifted */
	uint8_t evaded;             /* audits in a row that its auditors could not make, at most CORE_EVADED_MAX */
	bool spent;                 /* the run went back for what it hid since its last strike, or no longer does */
};

/* Durable facts, in the order they must become durable. Replaying all of them rebuilds the core. */
enum core_record_type {
	CORE_MEMBER = 1,
	CORE_ROSTER,
	CORE_COMMIT,
	CORE_SNAPSHOT,
	CORE_SEQ,
	CORE_ROLLBACK,
	CORE_AWAY,
	CORE_LEASES,
	CORE_PROOF
};
enum { CORE_OVERRAN_MAX = 6, CORE_OVERRAN_UNKNOWN = UINT8_MAX };
struct core_record {
	uint64_t id; /* 1, 2, 3, ... */
	uint8_t type;
	/* Once durable, documents with a seq below this may be announced. The document of a core that
	 * was just rebuilt has exactly this seq: it is a function of the records alone, so announcing
	 * it twice announces the same bytes. */
	uint64_t doc_seq;
	/* MEMBER: a later record of the same member replaces the earlier one. AWAY: the member leaves
	 * memory; it returns by a MEMBER record. ROLLBACK: because of which member; NET_NO_MEMBER: the
	 * operator's. */
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	uint8_t n_candidates; /* its last addresses; 0: it has not reported yet */
	struct candidate_ref candidates[NET_MAX_CANDIDATES];
	bool banned;
	struct rv_hash token_hash; /* core_token_hash of the token it spent; zero: none */
	uint8_t blame_level;       /* its cost to others (exclusion.c); counts for one that is not in memory */
	uint64_t blame_until;      /* first round that may have it again */
	struct core_reputation reputation;
	uint64_t term; /* ROLLBACK: the one that begins */
	/* ROSTER, COMMIT, SNAPSHOT; ROLLBACK: the round that is open again */
	uint64_t round;
	uint32_t attempt;
	struct rv_hash digest;     /* COMMIT: of the round; SNAPSHOT: the full hash at `round` */
	struct rv_hash chain;      /* COMMIT: state_hash(round + 1); SNAPSHOT: state_hash(round) */
	uint32_t n_chunks;         /* ROSTER: of what the round exchanges */
	uint32_t slow_deadline_ms; /* ROSTER: document.slow_deadline_ms */
	/* ROSTER: how many attempts of the round before it ran into their deadline, at most
	 * CORE_OVERRAN_MAX; CORE_OVERRAN_UNKNOWN: of a release that did not write it. */
	uint8_t overran;
	struct equivocation proof; /* PROOF: its member is banned, and no attempt of it is committed */
	/* ROSTER, COMMIT: the participants, ascending. ROSTER of none: the round is open again. LEASES:
	 * members that are granted text or give theirs back, ascending. */
	uint16_t n_members;
	uint16_t n_blamed; /* ROSTER, COMMIT: members that spoiled the attempt before, or this one; ascending */
	/* Up to here a copy costs little; what follows counts up to n_members and n_blamed only. */
	uint32_t members[NET_MAX_ROSTER];
	uint64_t tokens[NET_MAX_ROSTER]; /* ROSTER, COMMIT: tokens of each contribution */
	uint64_t boots[NET_MAX_ROSTER];  /* ROSTER: the process that holds each contribution (report.boot) */
	uint64_t rates[NET_MAX_ROSTER];  /* ROSTER: bandwidth of its line, bytes/s: the slower direction; 0: not known */
	uint64_t downs[NET_MAX_ROSTER];  /* ROSTER: of its downlink */
	/* ROSTER, COMMIT, in a run with leases: the numbers in its stream that each contribution has
	 * read, as in its report. LEASES: lease_count is what the member is granted; 0: it gives back
	 * all. */
	uint64_t lease_first[NET_MAX_ROSTER];
	uint32_t lease_count[NET_MAX_ROSTER];
	/* ROSTER, COMMIT: how each contribution is sent: as in member_ref. */
	uint8_t codecs[NET_MAX_ROSTER], parts[NET_MAX_ROSTER];
	struct seal roots[NET_MAX_ROSTER]; /* ROSTER: member_ref.contribution */
	/* ROSTER: sets of places in `members`: those that may own chunks; those of them that own half a
	 * part, beside others that need no relay. */
	uint64_t owners[CORE_ROSTER_WORDS], relayed[CORE_ROSTER_WORDS];
	uint32_t blamed[NET_MAX_ROSTER];
};

/* Copies what counts of a record: one of few participants costs little. */
void core_record_copy(struct core_record *to, const struct core_record *from);

/* Returns the hash that a record and the store keep of a token: BLAKE2b("rivulet token" | run_id |
 * token). */
struct rv_hash core_token_hash(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t token[NET_TOKEN_BYTES]);

uint32_t core_most_chunks(const struct core_config *cfg); /* of a fragment */

struct core; /* opaque: core_size() bytes of the caller's memory, aligned as malloc does */
size_t core_size(const struct core_config *cfg);
struct core *core_init(void *memory, const struct core_config *cfg, int64_t now_us);
/* Rebuilds the core from a stored record, oldest first, before any other call. RV_E_CORRUPT names
 * the record. */
enum rv_err core_replay(struct core *c, const struct core_record *rec, struct rv_errtext *et);
/* Ends a replay: makes the document. Between core_replay() and this nothing else may be called. */
void core_replayed(struct core *c);

/* Checks that a join is for this run, in a version that both sides speak. RV_E_PROTOCOL. */
enum rv_err core_check_join(const struct core *c, const struct join_request *rq, struct rv_errtext *et);
/* Takes a join by the holder of `key`. token_ok: the platform found that the token admits one more
 * (ignored for a known key, and for one that joins), counting those whose records are durable and
 * those that wait (core_count_joining). On RV_OK *member is its number; the record must be durable
 * before the platform replies (core_next_record). RV_E_AUTH (unknown key, no valid token),
 * RV_E_FULL (max_here members are here), RV_E_BUSY (too many records wait for the store),
 * RV_E_PROTOCOL (version). A key that the store has an AWAY record of returns first
 * (core_return). */
enum rv_err core_join(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct join_request *rq,
					  bool token_ok, uint32_t *member, struct rv_errtext *et);
/* Returns true if the record that makes the holder of `key` a member waits to be durable. */
bool core_is_joining(const struct core *c, const uint8_t key[NET_KEY_BYTES]);
/* Returns how many such records wait that came by the token with this hash. */
int core_count_joining(const struct core *c, const struct rv_hash *token_hash);
/* Takes a member back that is AWAY, by its last record in the store: it is in memory again when the
 * records are durable (core_next_record). RV_E_FULL, RV_E_BUSY: as core_join; RV_E_CORRUPT: a
 * record of no member that is away. */
enum rv_err core_return(struct core *c, int64_t now_us, const struct core_record *away, struct rv_errtext *et);
/* Takes a report by the holder of `key`; ignores a stale one (boot, seq). RV_E_AUTH: not a member,
 * or banned; or another process of the same key with a later boot is followed instead, and the
 * sender should end. */
enum rv_err core_report(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct report *rep,
						struct rv_errtext *et);
/* Takes a report likewise, and leaves what follows from it to the next core_tick: reports of many
 * members that come together cost one look at all of them. */
enum rv_err core_take_report(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct report *rep,
							 struct rv_errtext *et);
/* Sets *out to a notice for the holder of `key`; returns false if there is none. */
bool core_notice(const struct core *c, const uint8_t key[NET_KEY_BYTES], struct notice *out);
/* Bans a member, or lifts the ban: a banned one is not waited for and in no roster. RV_E_NOTFOUND:
 * no such member. */
enum rv_err core_ban(struct core *c, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et);

/* ---- a committed round whose state no present member holds ---- */

/* Reports state what each member's disk can prove. If no present member holds the state of the
 * current round, the run stands still: its last holders may be switched off, or have come back
 * without it. Only a person can know that they will not return, so only the operator takes
 * committed rounds back, which begins a new term. */
enum core_state_kept {
	CORE_STATE_HELD,   /* a present member holds it, or it is not known for liveness_us yet, or no member is present */
	CORE_STATE_ABSENT, /* no present member holds it, and not all of its last holders have come back and caught up */
	CORE_STATE_LOST    /* its last holders have come back with less, and have reported that for liveness_us or longer */
};
struct core_kept {
	enum core_state_kept state;
	uint64_t round; /* the round of that state */
	/* Sets of slots. Members that held it last, including those that were members before this
	 * coordinator started and have not reported since. */
	uint64_t last_held[CORE_HERE_WORDS];
	uint64_t absent[CORE_HERE_WORDS];    /* those of them that are not present, or have only just come back */
	uint64_t behind[CORE_HERE_WORDS];    /* other members that still lack what a present one has: they may hold more */
	bool has_best;                       /* there is an earlier round that a present member can prove: */
	uint64_t best_round;                 /* the latest one */
	uint64_t best_held[CORE_HERE_WORDS]; /* the members that can prove it */
	/* Most of the members that are present, or may come back, report a later round or term: this
	 * coordinator's store is an old copy. */
	bool ahead;
};
void core_kept(const struct core *c, struct core_kept *out);
/* Sets `out` (slots) to the present members that have proven the state of this round, committed or
 * open; returns their number. None also if it is too far back for its state hash to be known. */
int core_holders(const struct core *c, uint64_t round, uint64_t out[CORE_HERE_WORDS]);

/* Rounds without a member that is not alive, or has left, after which others read what is leased to
 * it. */
enum { CORE_LEASE_KEPT_ROUNDS = 4 };
enum { CORE_AUDIT_ROUNDS = 15 };  /* the longest window of audits */
enum { CORE_PAST_ROUNDS = 1024 }; /* how far back a rollback can go */
/* Takes back, for the operator, all rounds from `to_round` on; done when the record is durable.
 * `force`: also if that gives up rounds that a member holds or may hold, or if no present member
 * has proven to_round. RV_E_INVALID: nothing to take back, or refused without force; RV_E_RANGE:
 * too far back; RV_E_BUSY: a decision is being made durable, retry. */
enum rv_err core_rollback(struct core *c, int64_t now_us, uint64_t to_round, bool force, struct rv_errtext *et);

/* Reports whether the member's long-poll connection is open. If it closed, and the member neither
 * opens another nor reports for silent_us / 4, rounds stop waiting for it: most likely its process
 * ended. Ignores an unknown key. */
void core_listens(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens);
/* The same, without what follows from it: call core_tick soon. */
void core_take_listens(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens);
/* Lists these relays of members in documents from now on, in place of earlier ones: after the
 * operator's, as far as there is room. */
void core_list_relays(struct core *c, const struct relay_ref *offered, int n);
/* Takes what the holder of `key` shows: two seals of one owner, or what it got in the attempt whose
 * votes differ, if it is asked (document.asked). RV_E_AUTH: not a member, or banned; RV_E_INVALID:
 * the proof proves nothing, or what it shows is not what it voted for. */
enum rv_err core_testify(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct evidence *e,
						 struct rv_errtext *et);
/* Returns the number of proofs that were recorded, and sets `out` to the latest of them. */
int core_proofs(const struct core *c, struct equivocation out[NET_MAX_PROOFS]);
void core_tick(struct core *c, int64_t now_us);
int64_t core_deadline_us(const struct core *c);

bool core_next_record(struct core *c, struct core_record *out);
bool core_has_records(const struct core *c); /* core_next_record has one */
/* Returns true if another record than those of members waits: a decision, or numbers for documents,
 * for which members wait. */
bool core_has_decision(const struct core *c);
/* Returns how many of the records that wait are of members (MEMBER, AWAY) and before any other:
 * they may be made durable together, and core_persisted() is then called for each, in their
 * order. */
int core_count_member_records(const struct core *c);
/* Writes the i-th of those that wait; 0 is the next one. */
void core_record_at(const struct core *c, int i, struct core_record *out);
void core_persisted(struct core *c, uint64_t record_id, int64_t now_us);

/* Returns the latest document that may be announced; never NULL after init. */
const struct document *core_document(const struct core *c);
/* Writes the same as the member in `slot` needs it: its own document, of that number. Returns false
 * while there is none: its state is no longer that of the latest document, and no later number
 * is durable. */
bool core_document_of(const struct core *c, uint32_t slot, struct document *out);

/* Events for the log, in order; they decide nothing. A ring: unread, the oldest are lost. */
enum core_event_type {
	CORE_EVENT_ALIVE = 1,   /* its first report, or the first after it was dead */
	CORE_EVENT_DEAD,        /* no report for liveness_us */
	CORE_EVENT_SUSPECTED,   /* its peers receive nothing from it: counts as dead until it reports again */
	CORE_EVENT_LOST,        /* has no more what it takes part in the all-reduce with: as after a restart */
	CORE_EVENT_DISAGREED,   /* its digest of (round, attempt) is not the majority's */
	CORE_EVENT_DIVERGED,    /* its full hash of `round` is not the majority's */
	CORE_EVENT_WRONG_CHAIN, /* it claims to hold `round`, with another state hash */
	CORE_EVENT_WRONG_SIZE,  /* its vector has another number of chunks than the run's */
	CORE_EVENT_AHEAD,       /* it claims a later round or term than the run's; `round` is the run's */
	CORE_EVENT_NO_SNAPSHOT, /* `round` cannot be reduced before a majority vouches for a full hash; member: none */
	CORE_EVENT_SPLIT,       /* all have reported a full hash of `round`, and none has a majority; member: none */
	CORE_EVENT_LEFT,        /* it has left */
	CORE_EVENT_ABSENT,      /* CORE_STATE_ABSENT; member: none */
	CORE_EVENT_GONE,        /* CORE_STATE_LOST; member: none */
	CORE_EVENT_HELD,        /* CORE_STATE_HELD again; member: none */
	CORE_EVENT_APART,       /* it and `other` do not reach each other: it is left out if enough others are ready */
	CORE_EVENT_SPOILED,     /* it holds the state, and trains the round again: its contribution was unusable */
	CORE_EVENT_TWICE,       /* two processes have its key; the one with the earlier boot is refused */
	CORE_EVENT_TOKENS,      /* it reports more tokens than it can have trained on: core_most_tokens count */
	CORE_EVENT_OVERDUE,     /* others have voted, it neither votes nor accuses: counts as dead until it reports */
	CORE_EVENT_EXCLUDED,    /* it has spoiled attempts repeatedly: in no roster before `round` if others suffice */
	CORE_EVENT_IN_VAIN,     /* a round waited for it until grace was over: no round before `round` will */
	CORE_EVENT_RESTS,       /* its line cannot make the deadline of an exchange: in no roster before `round` */
	CORE_EVENT_SENDS_LESS,  /* for that reason it sends a coarser contribution, or a part of it, from `round` on */
	CORE_EVENT_UNLIKE,      /* no majority of `round` has voted alike; member: none */
	CORE_EVENT_MUTE,        /* had not voted when a majority had for long: none waits for its vote before `round` */
	CORE_EVENT_LEASE,       /* its contribution has read what is not leased to it: it is not ready */
	CORE_EVENT_DISPUTED,    /* `other` reports that its average of `round` is wrong: others look */
	CORE_EVENT_LIED,        /* members agree that its average of `round` is not that of the contributions: banned */
	CORE_EVENT_FALSE_AUDIT, /* its audit of `round` says of `other` what others refute */
	CORE_EVENT_WITHHELD,    /* auditors did not get its contribution to `round`, or another one than it committed to */
	CORE_EVENT_TAKEN_BACK,  /* the run goes on from `round`, as the average of it was a lie; member: whose */
	CORE_EVENT_TWO_ROOTS,   /* it has signed two contributions to `round`, as one process; other: the codec */
	CORE_EVENT_EQUIVOCATED, /* it has signed two lists of means in an attempt of `round`; other: first chunk */
	CORE_EVENT_FALSE_VOTE,  /* what it shows of `round` is not what it voted for: put away */
	CORE_EVENT_NO_EVIDENCE, /* asked what it got in `round`, it has shown nothing in time: put away */
	CORE_EVENT_DOUBTED,     /* `other` measured little of its contribution to `round`: two others look */
	CORE_EVENT_WORTHLESS,   /* two auditors found its contribution to `round` worthless; other: a score */
	CORE_EVENT_APPEALED,    /* it asks for another look at that: two others score it */
	CORE_EVENT_UPHELD,      /* these do not clear it */
	CORE_EVENT_CLEARED,     /* both found it worth its place: the strike is lifted */
	CORE_EVENT_UNRESOLVED,  /* the window of an audit of its contribution to `round` is over, with no result */
	CORE_EVENT_EVADED,      /* its auditors of `round` did not reach it, though rounds were committed with both */
	CORE_EVENT_UNSHOWN,     /* as a final owner it has not shown the sums of `round`; other: so many rounds */
	CORE_EVENT_UNREPEATED,  /* two found that its contribution to `round` is not what its steps give; other: how far */
	CORE_EVENT_NEEDED,      /* a roster has it though it is in quarantine until `round`: too few others are ready */
	CORE_EVENT_NO_REPEAT,   /* so many rounds in a row, up to `round`, cannot be repeated; other: how many */
	CORE_EVENT_AT_ODDS,     /* alone or with few it accuses `other`: one of the two is at fault, nothing says which */
	CORE_EVENT_UNSTEADY,    /* went in the middle of rounds; in no roster before `round` if others suffice */
	CORE_EVENT_COUNT
};
struct core_event {
	uint8_t type;
	uint32_t member; /* NET_NO_MEMBER: none */
	uint64_t round;
	uint32_t attempt;
	/* APART, DISPUTED, FALSE_AUDIT, DOUBTED: the member. WORTHLESS: the gain in thousandths of the
	 * auditor's own, an int32_t. UNREPEATED: the distance in thousandths. SENDS_LESS: codec | part
	 * << 8, as in member_ref. EQUIVOCATED: the chunk. TWO_ROOTS: the codec. EVADED: how often in a
	 * row. UNSTEADY: of how many. */
	uint32_t other;
};
bool core_next_event(struct core *c, struct core_event *out);

/* Returns the number of members in memory, here or not; and the slot of the k-th of them, by
 * ascending number: for loops over all, core_nth(c, 0..core_here(c) - 1). */
int core_here(const struct core *c);
uint32_t core_nth(const struct core *c, int k);
/* Returns the number of words of a set of slots (coordinator/core/set.h). */
int core_words(const struct core *c);
/* Return the slot of the member that has this key, or this number; -1: none in memory. */
int core_find_key(const struct core *c, const uint8_t key[NET_KEY_BYTES]);
int core_find(const struct core *c, uint32_t member);
uint32_t core_number(const struct core *c, uint32_t slot);

/* Figures by which a decision about a member's line was made. */
struct core_line_figures {
	uint64_t rate;        /* bytes/s of its line: of one that rests the slower direction, else its uplink */
	uint32_t needs_ms;    /* what that needs: to rest for one payload, else for a whole contribution */
	uint32_t deadline_ms; /* of an exchange; 0: none */
};
/* The positions of the text that were leased (base/leases.h), by what became of them; all zero in a
 * run without leases. Without rollbacks beyond what is remembered each one that is not in `held` or
 * `free` was read by one committed round, but for those left out. */
struct core_text {
	uint64_t next; /* positions below this were leased to somebody */
	uint64_t consumed, held, free, left_out;
};
struct core_text core_text(const struct core *c);

/* Audits of averages since this coordinator started. */
struct core_audit_figures {
	uint64_t drawn, right, wrong; /* wrong: of which it is proven */
	uint64_t unresolved;          /* those that ended without an auditor's answer that counts */
	uint32_t open;                /* under way */
};
struct core_audit_figures core_audits(const struct core *c);

/* Audits of training since this coordinator started. */
struct core_score_figures {
	uint64_t drawn, worthy, worthless;
	uint64_t repeats;         /* of those drawn: that repeat steps */
	uint64_t unresolved;      /* those that ended without enough auditors' measurements */
	uint64_t evaded;          /* those whose auditors the author kept away */
	uint64_t appeals, lifted; /* strikes that members asked about; of which were taken back */
	uint32_t open;            /* under way */
};
struct core_score_figures core_scores(const struct core *c);

/* Consequences of a member's line. */
struct core_slow {
	uint64_t rests_until; /* first round that it takes part in again; 0: it does not rest */
	uint8_t codec, part;  /* of its contribution in the last roster: as in member_ref */
	/* By which it was left out of the last roster, or was to send less in it; of one that does
	 * neither, or if this coordinator started since: by the last report. */
	struct core_line_figures why;
};
/* Returns the deadline of an exchange by which that is decided: of the roster under way, or by what
 * is reported of lines now; milliseconds, 0: none, or no line is known. */
uint32_t core_slow_deadline_ms(const struct core *c);
/* Returns when the attempt under way reaches its deadline; INT64_MAX: there is none. */
int64_t core_attempt_closes_us(const struct core *c);

/* A member, for the platform and for people; borrowed until the next call. */
struct core_member_view {
	uint32_t slot, member;
	const uint8_t *key; /* NET_KEY_BYTES */
	const char *name;
	bool alive, banned;
	int64_t last_report_us;            /* 0: none since this coordinator started */
	const struct report *last;         /* zeros before the first */
	uint32_t owned_chunks, all_chunks; /* in the last all-reduce since the coordinator started */
	int place;                         /* in the roster under way; -1: it is no participant */
	int row;                           /* in the last roster, if that had several; -1: none */
	struct core_slow slow;
	struct core_reputation reputation;
};
struct core_member_view core_view(const struct core *c, uint32_t slot);
/* Sets `apart` (slots) to the members that it cannot connect to, in neither direction. Returns true
 * if therefore rounds begin without it if enough others are ready. */
bool core_apart(const struct core *c, uint32_t slot, uint64_t apart[CORE_HERE_WORDS]);
enum { CORE_MISSED_MAX = 8 };
/* Returns the most tokens that a contribution counts with: round_tokens, and missed_tokens for
 * CORE_MISSED_MAX rounds. */
uint64_t core_most_tokens(const struct core *c);
/* Returns the bandwidth by which ownership is divided: that of the line's slower direction. 0: not
 * known. */
uint64_t core_line_rate(const struct report *rep);

#endif
