/* internal.h: the state behind core.h, shared by the files of this folder. Nobody else includes it.
 *
 * core.c          joins, reports, bans, time: what comes in
 * record.c   decisions waiting to be durable; what a durable one changes (live and in replay: the same code)
 * members.c  who is alive, who holds the state, who has a contribution
 * rivals.c   whose reports count when two processes have one key
 * roster.c   OPEN: when the roster is frozen
 * arrivals.c ... and for whom it waits who is only just catching up
 * exclusion.c ... who stays out, or is not waited for, because of what it has cost
 * reopen.c   ... again, after a roster of none
 * votes.c    REDUCE: votes, commit, the next attempt
 * deadline.c REDUCE: how long an attempt may take
 * suspects.c REDUCE: accusations
 * pairs.c    ... between two that do not reach each other
 * notice.c   what a member hears of itself
 * ownership.c   who owns which chunks
 * shares.c   ... and how many
 * snapshot.c     which full hash the majority vouches for
 * standstill.c ... and whose word counts when too few have the state
 * past.c     committed rounds and vouched snapshots, to go back to
 * rollback.c who still holds the state; committed rounds are taken back
 * document.c what is announced */
#ifndef RV_COORDINATOR_CORE_INTERNAL_H
#define RV_COORDINATOR_CORE_INTERNAL_H

#include "coordinator/core/core.h"

enum {
	CORE_QUEUE = NET_MAX_MEMBERS + 8, /* every member joining at once, and a decision */
	CORE_EVENTS = 128,
	CORE_SEQ_BLOCK = 1024,                      /* document numbers made durable ahead */
	CORE_PAST_SNAPSHOTS = CORE_PAST_ROUNDS + 1, /* every round may have one, the current one too */
	CORE_PAIRS = 64,
	CORE_FORMERS = 4
};

/* A process that has a member's key and an earlier boot than the one that is followed. */
struct core_rival {
	uint64_t boot, seq; /* of its last report; boot 0: there is none */
	int64_t heard_us;
	bool answered; /* the followed one was heard anew since then */
	int turns;     /* of its reports, those that came after such an answer */
};

/* A process of a member that was followed until another one was. */
struct core_former {
	uint64_t boot, seq; /* of its last report; boot 0: there is none */
};

/* What a member has cost (exclusion.c). */
struct core_level {
	uint8_t level;        /* 0: nothing, or it has made up for it */
	uint64_t until_round; /* what follows from it holds before this round */
};

struct core_member {
	/* Durable. */
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	char addr[NET_ADDR_BYTES];
	bool banned;
	struct rv_hash token_hash;
	struct core_level blame; /* attempts that it ended: no rosters */
	/* Wanted, and recorded when nothing else is under way. */
	char want_addr[NET_ADDR_BYTES];
	int64_t moved_until_us; /* its address changes so far are paid for until then (core_moves_at) */
	bool want_banned;
	/* Volatile: what its reports say. */
	int64_t heard_us;
	int64_t told_us;  /* its last report; heard_us is later where this coordinator did not run meanwhile */
	bool reported;    /* since this coordinator started */
	bool awaited;     /* known from before the start: given until liveness_us to report */
	bool from_before; /* a member since before this coordinator started: it may hold what it has not told us of */
	bool was_here;    /* at back_us it, or the process that is followed, came or came back */
	int64_t back_us;
	int64_t further_us; /* it came back, or proved a later round than before */
	uint64_t proven_before;
	bool unmoved;        /* it came, or came back after a silence, behind the run, and is no further since */
	uint64_t came_round; /* what it held then */
	bool hung_up;        /* at hung_up_us its connection was closed from its end; no other one since */
	int64_t hung_up_us;  /* the last time */
	struct core_former formers[CORE_FORMERS]; /* those before the present process, the latest first */
	struct core_rival rival;
	bool distrusted;   /* its peers get nothing from it: dead until it reports again */
	uint64_t put_away; /* members distrusted on its word alone, in put_away_round */
	uint64_t put_away_round;
	struct core_level vain; /* open rounds that waited for it in vain: they wait no more */
	bool was_alive;         /* as the last event said */
	struct report last;
	/* Of each type of event the last one, so that a repeated report is not a repeated event. */
	struct core_event said[CORE_EVENT_COUNT];
};

struct core_roster {
	uint16_t n;
	uint32_t n_chunks; /* of what it exchanges, as its record says */
	uint32_t members[NET_MAX_MEMBERS];
	uint64_t tokens[NET_MAX_MEMBERS];
	uint64_t boots[NET_MAX_MEMBERS];
	uint64_t rates[NET_MAX_MEMBERS];
	uint32_t weights[NET_MAX_MEMBERS];
	uint16_t n_ranges;
	struct owner_range ranges[NET_MAX_RANGES];
	/* Volatile. Sets of roster indices. */
	uint64_t voted, taking_part; /* has told that it votes for, or works in, this very attempt */
	struct rv_hash digests[NET_MAX_MEMBERS];
};

/* A committed round: what a rollback to it, or over it, needs. */
struct core_past_round {
	struct rv_hash chain; /* state_hash(round) */
	struct rv_hash digest;
	uint64_t participants;
};

struct core_past_snapshot {
	uint64_t round;
	struct rv_hash hash;
};

struct core_past {
	uint64_t first; /* rounds first..c->round - 1 are known; round r at r % CORE_PAST_ROUNDS */
	struct core_past_round rounds[CORE_PAST_ROUNDS];
	int n_snapshots;
	struct core_past_snapshot snapshots[CORE_PAST_SNAPSHOTS]; /* vouched for, ascending */
};

/* Time for which open rounds wait for those who are nearly there (arrivals.c). */
struct core_arrivals {
	int64_t since_us;   /* one waits for them, and for nobody else; INT64_MAX: not */
	int64_t left_us;    /* at counted_us */
	int64_t counted_us; /* a sixteenth of what has passed since comes back */
	bool used_up;       /* and not whole again */
};

/* Two members of whom one accused the other, and nobody else did. */
struct core_pair {
	uint32_t a, b; /* a < b */
	int strikes;
	uint64_t round; /* of the last one */
};

struct core {
	struct core_config cfg;
	int n_members;
	struct core_member members[NET_MAX_MEMBERS];

	uint64_t round;
	struct rv_hash chain;
	uint64_t snapshot_round;
	struct rv_hash snapshot_hash, snapshot_chain;
	struct rv_hash log[NET_MAX_LOG_DIGESTS]; /* digest of snapshot_round + i, i < round - snapshot_round */
	uint32_t attempt;                        /* the last one recorded of this round; 0: none */
	struct core_roster roster;               /* n == 0: the round is open */
	/* Sets of member numbers: who was on a roster of this round, and of them whom a later one was without. */
	uint64_t rostered, left_out;
	uint64_t spoilers;    /* members blamed in this round: it is no clean one of theirs */
	uint32_t reopened;    /* rosters of none in this round */
	uint64_t last_commit; /* set of member numbers */
	uint64_t term, term_round;
	struct core_past past;
	/* Volatile. */
	uint64_t seen_holding;          /* members that have proven the state of `round` since it began */
	enum core_state_kept kept_said; /* as the last event said */
	int64_t not_held_since_us;      /* nobody here has proven it since; INT64_MAX: somebody has */
	/* Volatile. */
	int64_t still_since_us; /* too few have the state, and others who are here lack it; INT64_MAX: not so */
	int n_pairs;
	struct core_pair pairs[CORE_PAIRS];
	/* Volatile. */
	uint64_t blamed;        /* members that this attempt is going to be blamed on */
	uint64_t waited_for;    /* members for which the open round has waited */
	int64_t reopened_us;    /* the last time */
	uint32_t in_vain;       /* rosters of none in a row that taught nothing (core_note_lesson) */
	bool learned;           /* since the last roster of none */
	uint32_t lessons;       /* in this round */
	uint32_t split_rosters; /* of this round, without two votes alike */
	uint32_t parted;        /* the member that the last such round went on without; NET_MAX_MEMBERS: none */
	/* Volatile, for people: of the last roster, by member. */
	uint32_t owned[NET_MAX_MEMBERS], owned_of; /* chunks, of so many */

	struct core_record queue[CORE_QUEUE];
	int n_queue;
	uint64_t next_id;
	bool ahead; /* planted bug only: queue[0] has been applied already */

	struct document doc, scratch;
	uint64_t seq_durable; /* documents below may be announced */
	uint64_t seq_planned; /* ... once the queue is durable */

	int64_t ready_since_us;        /* min_workers are ready since; INT64_MAX: not */
	int64_t accused_since_us;      /* INT64_MAX: no accusation in this attempt */
	int64_t gather_us;             /* how long others are gathered from then on */
	int64_t attempt_since_us;      /* when the roster was frozen, or this coordinator started */
	int64_t reduce_since_us;       /* when the round's first roster was frozen */
	int64_t exchange_us;           /* from there to the commit, in the last round */
	struct core_arrivals arrivals; /* volatile */
	uint64_t no_snapshot_said;     /* round for which NO_SNAPSHOT was told */
	uint64_t split_said;           /* round for which SPLIT was told */
	int64_t now_us;                /* the last time handed in */

	struct core_event events[CORE_EVENTS];
	int events_first, n_events;
};

static inline uint64_t core_bit(uint32_t i) {
	return 1ull << i;
}

static inline uint64_t core_first(int n) {
	return n >= 64 ? UINT64_MAX : (1ull << n) - 1;
}

/* Which fragment a round exchanges, and in how many chunks. */
static inline uint32_t core_fragment(const struct core *c, uint64_t round) {
	return c->cfg.fragments > 1 ? (uint32_t)(round % c->cfg.fragments) : 0;
}
static inline uint32_t core_chunks(const struct core *c, uint64_t round) {
	return c->cfg.n_chunks[core_fragment(c, round)];
}

static inline int core_count(uint64_t set) {
	return __builtin_popcountll(set);
}

/* ---- core.c ---- */

/* Everything that may follow from a change: decisions, then the document. */
void core_step(struct core *c, int64_t now_us);
/* Tells people. Of one member and (round, attempt) each is said once, but for ALIVE, DEAD and LEFT. */
void core_say(struct core *c, enum core_event_type type, uint32_t member, uint64_t round);
void core_say_pair(struct core *c, uint32_t member, uint32_t other); /* APART */

/* ---- record.c ---- */

/* A new record of `type` at the end of the queue, its id, round and document numbers filled in. */
struct core_record *core_push(struct core *c, enum core_record_type type);
/* The member that a record in the queue makes of `key`, or -1. */
int core_find_pending(const struct core *c, const uint8_t key[NET_KEY_BYTES]);
int core_count_pending_joins(const struct core *c);
/* The bug that the simulator must find, when it is planted: a decision takes effect before it is durable. */
void core_apply_ahead(struct core *c);
/* The effect of a durable record. RV_E_CORRUPT: it cannot follow what came before. */
enum rv_err core_apply(struct core *c, const struct core_record *rec, struct rv_errtext *et);

/* ---- members.c ---- */

int core_find_member(const struct core *c, const uint8_t key[NET_KEY_BYTES]);
bool core_alive(const struct core *c, const struct core_member *m);
/* Alive, and neither banned, nor distrusted by its peers, nor leaving. */
bool core_available(const struct core *c, const struct core_member *m);
int core_count_available(const struct core *c);
/* Its disk takes results of rounds, as far as is known: else it cannot vote, and no round begins with it. */
bool core_stores(const struct core_member *m);
int core_count_able(const struct core *c); /* available, and can vote */
/* Its full hash of the snapshot's round is another than the majority's: until its reports say otherwise, it must resync. */
bool core_diverged(const struct core *c, const struct core_member *m);
/* It cuts what its round exchanges as the run does. */
bool core_right_size(const struct core *c, const struct core_member *m);
/* It says that it holds state_hash(round), and is not known to hold other bits. */
bool core_in_sync(const struct core *c, const struct core_member *m);
/* SYNCING, and yet it proves the state of the round that is open: it trains that round again, for what it had was of no
 * use. It is not waited for, but it holds the state. */
bool core_spoiled(const struct core *c, const struct core_member *m);
/* Its encoded outer gradient of the round is ready to be reduced. */
bool core_contributes(const struct core *c, const struct core_member *m);
/* Holds the result of the last commit, which it took part in, as far as its last report tells: of before that commit,
 * or while it applies it. One that came back without that result (killed before its vote, an empty disk) is behind as
 * anybody else is, and says so: SYNCING, and no proof. (Version 3 cannot say so.) */
bool core_about_to(const struct core *c, uint32_t member);
/* From when on a round does not wait for it, without another word from it. */
int64_t core_silent_at(const struct core *c, const struct core_member *m);
/* From when on its address may be recorded again: each change is a record, and a document for everybody. */
int64_t core_moves_at(const struct core_member *m);
void core_count_move(struct core_member *m, int64_t now_us);
/* A freeze waits for it: it trains this round, or is about to. */
bool core_waited_for(const struct core *c, uint32_t member);
/* Set of the available members that core_contributes. */
uint64_t core_contributors(const struct core *c);
/* Before c->now_us becomes `now_us`: whoever was alive counts as heard now, when it is the coordinator that was away.
 */
void core_forgive_own_absence(struct core *c, int64_t now_us);
/* Says who came alive and who died. */
void core_watch_liveness(struct core *c);

/* ---- rivals.c ---- */

/* Older than what is known. The clock of a machine may have been set back between two starts of a worker, so of a
 * member that was silent for long, or has hung up, another process is believed whatever its boot. */
bool core_is_stale(const struct core *c, const struct core_member *m, const struct report *rep, int64_t now_us);
/* Before a report that is not stale becomes the member's last one. */
void core_follow(struct core_member *m, const struct report *rep);
/* One that is: RV_OK when it is to be ignored, RV_E_AUTH when its process lives beside the one that is followed. */
enum rv_err core_stale_report(struct core *c, uint32_t member, const struct report *rep, int64_t now_us,
							  struct rv_errtext *et);

/* ---- roster.c, votes.c, suspects.c, snapshot.c: decisions. At most one record each. ---- */

void core_decide_roster(struct core *c);
/* Weights of the roster from its tokens. */
void core_weigh(struct core *c);
/* Takes participant i's last report into account, when it is a vote of the current attempt. */
void core_take_vote(struct core *c, uint32_t i);
void core_decide_reduce(struct core *c);
/* Participants that cannot be counted on any more: dead, banned, distrusted, leaving or without their contribution. */
uint64_t core_missed(const struct core *c);
/* Gathers accusations; when the time is over, the accused are distrusted. */
void core_weigh_suspects(struct core *c);
/* After the first accusation, who lives has been heard of within so long. */
static inline int64_t core_unclear_us(const struct core *c) {
	int64_t us = c->cfg.liveness_us / 2;
	return us > c->cfg.suspect_gather_us ? us : c->cfg.suspect_gather_us;
}
void core_decide_snapshot(struct core *c);
/* state_hash(round) for snapshot_round <= round <= the current one. */
struct rv_hash core_chain_at(const struct core *c, uint64_t round);

/* ---- deadline.c ---- */

/* How long the attempt may take: document.deadline_ms. */
uint32_t core_attempt_ms(const struct core *c);
/* When the coordinator ends it by itself, without any accusation. */
int64_t core_overdue_at_us(const struct core *c);
/* Distrusts the participants that hold the attempt up past that time; false: there are none. */
bool core_end_overdue(struct core *c);

/* ---- exclusion.c ---- */

/* Members that ended an attempt of this round, and members that have taken part in a round without that. From records
 * alone. */
void core_blame(struct core *c, uint64_t members);
void core_absolve(struct core *c, uint64_t members);
void core_forget_blame(struct core *c);
/* Says which of them will stay out of later rounds when core_blame is called. */
void core_say_blamed(struct core *c, uint64_t members);
bool core_is_excluded(const struct core *c, const struct core_member *m);
/* `ready` without those, as long as min_workers are left, and the round has not been opened again. */
uint64_t core_without_excluded(const struct core *c, uint64_t ready);
/* Open rounds have waited for it in vain. */
bool core_waits_no_more(const struct core *c, const struct core_member *m);
/* Forgets for whom rounds waited in vain, and whom a word put away: the rounds themselves are taken back. */
void core_forget_waits(struct core *c);
/* The roster is frozen: counts for whom the round has waited in vain. */
void core_count_waits(struct core *c, uint64_t roster);

/* ---- reopen.c ---- */

/* No roster of the open round before then. */
int64_t core_reopened_until_us(const struct core *c);
/* The largest set of equal votes, and all votes: whether no two are alike, and leaving somebody out may help. */
bool core_splits(struct core *c, int best, int votes);
/* `ready` without the member whose turn it is to be left out after that. */
uint64_t core_without_next(const struct core *c, uint64_t ready);
void core_note_reopened(struct core *c); /* a roster of none */
/* This attempt has shown something that the next roster goes by. Counts so often in a round that a member which makes
 * up such things cannot have rosters without end. */
void core_note_lesson(struct core *c);
/* The round is committed over this set of members, or given up. */
void core_close_reopened(struct core *c, uint64_t participants);

/* ---- standstill.c ---- */

void core_watch_standstill(struct core *c);
int64_t core_standstill_us(const struct core *c); /* so long it lasts before it counts */
bool core_stands_still(const struct core *c);
/* Whose word on a full hash counts then. */
uint64_t core_electors_standing_still(const struct core *c);

/* ---- pairs.c ---- */

/* Participants (roster indices) i and j are at odds with nobody but each other. */
void core_pair_strike(struct core *c, uint32_t i, uint32_t j);
/* They have been in one all-reduce to its end. */
void core_pairs_met(struct core *c, const struct core_record *commit);
/* Its address is another: perhaps it can be reached there. */
void core_pairs_forget(struct core *c, uint32_t member);
/* `ready` without one of each pair that do not reach each other, as long as min_workers are left. */
uint64_t core_without_apart(const struct core *c, uint64_t ready);
/* The members that `member` does not reach, and they not it, until they meet in a round; *until_round: when it is tried
 * again. */
uint64_t core_apart_from(const struct core *c, uint32_t member, uint64_t *until_round);
/* Were all ready who are here: a round would begin without it for that reason. */
bool core_left_out_apart(const struct core *c, uint32_t member);

/* ---- past.c ---- */

void core_past_commit(struct core *c, const struct core_record *rec); /* before c->round moves on */
void core_past_snapshot(struct core *c, uint64_t round, const struct rv_hash *hash);
bool core_past_chain(const struct core *c, uint64_t round, struct rv_hash *chain); /* false: not known */
const struct rv_hash *core_past_digest(const struct core *c, uint64_t round);      /* past.first <= round < c->round */
/* Forgets what is after `round`, and makes the fields of c what they were when it was opened. False, and nothing
 * changes: it is not known so far back. */
bool core_past_return(struct core *c, uint64_t round);
bool core_past_can_return(const struct core *c, uint64_t round); /* whether it would */
/* The first round that it can return to: where the oldest snapshot is that the known rounds reach. */
uint64_t core_past_earliest(const struct core *c);

/* ---- rollback.c ---- */

/* Says when the state of the round is on nobody's disk any more, and when it is back. */
void core_watch_state(struct core *c);
/* NULL, or why the record cannot follow what came before. */
const char *core_apply_rollback(struct core *c, const struct core_record *rec);

/* So long a member that is behind others has for its next round, before what it may hold after that counts as lost. */
static inline int64_t core_catch_up_us(const struct core *c) {
	enum { LIVENESS_TIMES = 4 };
	return LIVENESS_TIMES * c->cfg.liveness_us;
}

/* ---- arrivals.c ---- */

/* Before `rep` becomes the last report of `m`. */
void core_note_arrival(const struct core *c, struct core_member *m, const struct report *rep, int64_t now_us);
/* Everybody else is ready. False: the round begins without them, or there is nobody. */
bool core_waits_for_arrivals(struct core *c);
/* The wait is over: it is counted. */
void core_end_arrivals(struct core *c);
int64_t
core_arrival_deadline_us(const struct core *c); /* when it will be, at the latest; INT64_MAX: there is no wait */

/* ---- ownership.c ---- */

/* Splits n_chunks among n owners, whose lines carry `rates` (core_shares); returns the number of ranges. */
uint16_t core_ownership_split(uint32_t n_chunks, int n, const uint64_t *rates, struct owner_range out[NET_MAX_RANGES]);
/* Hands the chunks of the owners that are not in `keep` (set of old indices) to the others; owners are renumbered to
 * the new roster, whose rates these are. In place; returns the number of ranges. */
uint16_t core_ownership_hand_over(struct owner_range *ranges, uint16_t n_ranges, uint64_t keep, const uint64_t *rates);
/* How many chunks each owner has. */
void core_ownership_count(const struct owner_range *ranges, uint16_t n_ranges, uint32_t owned[NET_MAX_MEMBERS]);

/* ---- shares.c ---- */

/* Nobody owns more than so many equal parts, unless it does already: an owner holds everyone's contributions to what it
 * owns, so this bounds its memory. */
enum { CORE_SHARE_MOST = 2 };
/* How many of n_chunks each of n owners should own, at least have[i]. rates: bytes per second of the slower direction
 * of each one's line, 0: not known. Equal parts when the rates are (about) equal, all unknown, or make no
 * difference. */
void core_shares(uint32_t n_chunks, int n, const uint64_t *rates, const uint32_t *have, uint32_t *share);

/* ---- document.c ---- */

/* Announces the current state when it differs from the document and a number for it is durable. */
void core_publish(struct core *c);
/* The document of a core that was just made or rebuilt. */
void core_republish(struct core *c);

#endif
