/* state.h: what a core keeps, and how its parts are reached. For the files of this folder only.
 *
 * The functions over it are in internal.h. */
#ifndef RV_COORDINATOR_CORE_STATE_H
#define RV_COORDINATOR_CORE_STATE_H

#include "base/leases.h"
#include "coordinator/core/core.h"
#include "coordinator/core/rows.h"

enum {
	CORE_QUEUE = 72, /* records of members, and a decision; joins beyond are refused until the store works again */
	CORE_EVENTS = 128,
	CORE_SEQ_BLOCK = 1024,                      /* document numbers made durable ahead */
	CORE_PAST_SNAPSHOTS = CORE_PAST_ROUNDS + 1, /* every round may have one, the current one too */
	CORE_PAIRS = 64,
	CORE_ODDS = 256,
	CORE_PROVEN = 64,
	CORE_FORMERS = 4
};

/* A process that has a member's key and an earlier boot than the one that is followed. */
struct core_rival {
	uint64_t boot, seq; /* of its last report; boot 0: there is none */
	int64_t heard_us;   /* time of that report */
	bool answered;      /* the followed process has reported since then */
	int turns;          /* number of its reports that came after such an answer */
};

/* A process of a member that was followed until another one was. */
struct core_former {
	uint64_t boot, seq; /* of its last report; boot 0: there is none */
};

/* The roots that a member has signed first for a round, as one process (signed_roots.c). */
struct core_signed {
	uint64_t boot, term, round;
	uint8_t n;
	uint8_t codecs[COMMITMENT_MAX];
	struct seal seals[COMMITMENT_MAX];
};

enum { CORE_LEVEL_MAX = 7 };
/* The cost of a member to others (exclusion.c). */
struct core_level {
	uint8_t level;        /* 0: nothing, or it has made up for it */
	uint64_t until_round; /* first round without the consequence */
};

/* The addresses at which a member may be dialed. */
struct core_places {
	uint8_t n; /* 0: it has not reported yet */
	struct candidate_ref at[NET_MAX_CANDIDATES];
};

struct core_member {
	/* Durable. */
	uint32_t number;
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	struct core_places places;
	bool banned;
	struct rv_hash token_hash;
	struct core_level blame; /* attempts that it ended: no rosters */
	struct core_reputation reputation;
	/* Wanted, and recorded when nothing else is under way. */
	struct core_places want_places;
	int64_t moved_until_us; /* time up to which its address changes are paid for (core_moves_at) */
	bool want_banned;
	uint8_t strike_due; /* enum core_strike_reason */
	/* Reason of the strike before the last one, which may be lifted; 0: there is none, or it is not
	 * known, as after AWAY. Follows from the records. */
	uint8_t reason_before;
	uint8_t evaded;  /* what reputation.evaded is to be (evasion.c) */
	uint8_t unshown; /* rounds of which it has shown no sums (audits_rows.c), volatile; the last: */
	uint64_t unshown_round;
	uint32_t audited;          /* the same, of reputation.audited */
	uint64_t strike_round;     /* the audited one, of the strike that is due */
	bool lift_due, uphold_due; /* the strike for lift_round is taken back, or stays */
	uint64_t lift_round;
	/* Volatile: what its reports say. */
	int64_t came_us;      /* time when it came into memory */
	uint64_t came_at;     /* round of the run then, live or in replay */
	uint64_t rostered_at; /* round of the last roster with it, + 1; 0: none since it came */
	uint64_t read_from;   /* with leases: round from which what it reads is not committed yet */
	uint8_t codec, part;  /* of its contribution in that roster */
	uint8_t slow_looks;   /* exchanges in a row after which its line looked slow, at most SLOW_LINES_LOOKS */
	struct core_line_figures decided; /* why it was not on the last roster, or sent less; rate 0: it did not */
	uint16_t place;                   /* in that roster */
	/* Places of those paths of its last report that are PATH_APART. */
	uint64_t apart[SET_WORDS(NET_MAX_PEERS)];
	int64_t heard_us; /* time of its last report, or later if this coordinator did not run meanwhile */
	int64_t told_us;  /* time of its last report */
	bool reported;    /* since this coordinator started */
	bool awaited;     /* known from before the start: has until liveness_us to report */
	bool from_before; /* a member since before this coordinator started: may hold more than it has reported */
	bool was_here;    /* it, or the followed process, came or came back at back_us */
	int64_t back_us;
	int64_t further_us; /* time when it came back, or proved a later round than before */
	uint64_t proven_before;
	bool unmoved;        /* it came, or came back after a silence, behind the run, and is no further since */
	uint64_t came_round; /* round that it held then */
	bool hung_up;        /* its end closed the connection at hung_up_us, and opened no other since */
	int64_t hung_up_us;  /* the last time */
	struct core_former formers[CORE_FORMERS]; /* processes before the present one, the latest first */
	struct core_rival rival;
	bool distrusted;         /* its peers get nothing from it: dead until it reports again */
	uint64_t put_away_round; /* the round that its set in core.put_away is of */
	struct core_level vain;  /* cost in open rounds that waited for it in vain: they no longer wait */
	struct core_level gone;  /* rounds in which it ended an attempt by going: no rosters */
	uint32_t n_gone;         /* those since it came into memory */
	uint64_t gone_in;        /* the last one that is noted, + 1; 0: none */
	uint64_t fell_in;        /* the last round in which its peers had it put away, + 1; 0: none, or it is settled */
	uint64_t fell_boot;      /* that it had then */
	struct core_level mute;  /* cost to majorities that waited for its vote in vain: they no longer wait */
	bool was_alive;          /* as the last event said */
	bool counted;            /* among those available in its houses */
	struct report last;
	struct core_signed signed_first; /* for the open round */
	/* The root over its inner state at the end of the last committed round with it. */
	struct rv_hash inner_end;
	uint64_t inner_round;
	uint32_t unrepeatable;    /* rounds in a row that nobody could repeat, by what it said of its inner state */
	uint8_t relay;            /* the one that documents name: last.relay, or an earlier one */
	int64_t station_until_us; /* time up to which changes of `relay` are paid for */
	/* The last event of each type, so that a repeated report is not a repeated event. */
	struct core_event said[CORE_EVENT_COUNT];
};

/* Arrays by roster place have max_roster elements; sets of roster places have roster_words. */
struct core_roster {
	uint16_t n;
	uint32_t n_chunks; /* of what it exchanges, as its record says */
	uint32_t *members;
	uint16_t *slots;
	uint64_t *tokens, *boots, *rates, *lease_first, *downs;
	uint32_t *lease_count;
	uint8_t *codecs, *parts;
	struct seal *roots;
	struct rv_hash hash; /* document.roster_hash */
	uint32_t slow_deadline_ms;
	uint32_t *weights;
	int n_owners; /* number of those that may own chunks */
	struct core_rows rows;
	uint16_t n_ranges; /* with one row */
	struct owner_range ranges[NET_MAX_RANGES];
	uint32_t attempt_ms; /* core_attempt_ms */
	/* Volatile. */
	uint64_t *voted, *taking_part; /* participants that report a vote for, or work in, this attempt */
	uint64_t *disbelieved;         /* whose votes for this attempt do not count (disputes.c) */
	uint64_t *vouched;             /* that have shown what they voted for in this attempt */
	struct rv_hash *digests;
	uint32_t *stands_out; /* what voters say (report.stands_out) */
};

/* A committed round, as far as a rollback to it, or over it, needs it. */
struct core_past_round {
	struct rv_hash chain; /* state_hash(round) */
	struct rv_hash digest;
};

struct core_past_snapshot {
	uint64_t round;
	struct rv_hash hash;
};

struct core_past {
	uint64_t first; /* rounds first..c->round - 1 are known; round r at r % CORE_PAST_ROUNDS */
	struct core_past_round rounds[CORE_PAST_ROUNDS];
	uint64_t *participants; /* a set of slots for each of `rounds`, without those that gave theirs up */
	int n_snapshots;
	struct core_past_snapshot snapshots[CORE_PAST_SNAPSHOTS]; /* vouched for, ascending */
};

/* Time for which open rounds wait for members that have nearly caught up (arrivals.c). */
struct core_arrivals {
	int64_t since_us;   /* start of a wait for them alone; INT64_MAX: none */
	int64_t left_us;    /* time left at counted_us */
	int64_t counted_us; /* a sixteenth of the time since then is added to left_us */
	bool used_up;       /* and not whole again */
};

/* Two members, one of which accused the other, as no third member did. */
struct core_pair {
	uint32_t a, b; /* slots; the member in `a` has the lower number */
	int strikes;
	uint64_t round; /* round of the last strike */
	bool met;       /* they have exchanged data since a strike: no router parts them */
};

/* A member that accused another one, as nobody else did: one of the two lies, or cannot help it. */
struct core_odds {
	uint32_t accuser, accused; /* slots */
	uint64_t accused_boot;
	uint64_t round; /* of the last time */
	int64_t at_us;
	uint32_t n_rounds; /* that it was noted in since it counts */
	bool outvoted;     /* a majority voted over the accusation each time: it says nothing of the accused */
};

/* The durable facts of a member: as they will be, in the queue. */
struct core_facts {
	uint32_t number;
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	struct core_places places;
	bool banned;
	struct rv_hash token_hash;
	struct core_level blame;
	struct core_reputation reputation;
};

/* A record that waits to be durable; the rest of a decision is core.decision. */
struct core_queued {
	uint64_t id, doc_seq, round;
	uint8_t type;
	struct core_facts facts; /* MEMBER, AWAY */
};

/* Slots, by ascending member number. */
struct core_list {
	int n;
	uint16_t *slots;
};

/* Parts of members' own documents, as of the latest one (views.c). */
struct core_views {
	bool many;                 /* members have documents of their own of the latest number */
	bool changed;              /* since that document, which has no successor for want of a number, or yet */
	bool ordered;              /* by leases or audits */
	struct core_list donors;   /* members that a joiner may fetch from; none in REDUCE */
	struct core_list behind;   /* members that lack the state */
	struct member_ref *refs;   /* by slot: how it is reached */
	uint64_t *stale;           /* slots whose ref may be another one */
	struct member_ref *roster; /* by place, of the attempt: with weight and boot */
};

/* A host at which members were seen (houses.c). */
struct core_house {
	uint16_t first;     /* seat of one of them, + 1 */
	uint16_t next;      /* house of the same hash, or, of one that is free, that is free too; + 1 */
	uint16_t available; /* members here that are available */
};

/* An address of a member, as a link of its house's list. */
struct core_seat {
	uint16_t house, before, after; /* a house, two seats, + 1; 0: none */
};
#define CORE_SEATS_OF(n) ((uint32_t)(n)*NET_MAX_CANDIDATES)

struct core_houses {
	uint16_t n, free;        /* houses that were ever taken; the first free one + 1 */
	uint16_t *heads;         /* by hash of the host: a house + 1; 0: none */
	struct core_house *at;   /* by house */
	struct core_seat *seats; /* by slot * NET_MAX_CANDIDATES + place of the address */
};

/* The members in memory. */
struct core_slots {
	uint32_t next_number; /* of the next member that joins */
	int n;                /* members in memory */
	uint32_t *numbers;    /* theirs, ascending */
	uint16_t *order;      /* and the slots, in the same order */
	uint64_t *used;       /* the set of these slots */
	uint16_t *heads;      /* by hash of the key: a slot + 1; 0: none */
	uint16_t *next;       /* by slot: the next one of the same hash, + 1 */
};

/* The committed attempt of each fragment's last round, and who owned what in it: a function of the
 * records (kept_owners.c). */
enum { CORE_KEPT_RANGES = 1024 };
struct core_kept_range {
	uint32_t count, member;
};
struct core_kept_owners {
	struct {
		uint32_t attempt; /* 0: no such round, or not in this term */
		uint16_t n;       /* ranges, with several rows columns; 0: not known */
		uint8_t n_rows;
	} of[NET_MAX_FRAGMENTS];
	/* CORE_KEPT_RANGES for each fragment, one after the other from chunk 0 on; columns have no
	 * member. */
	struct core_kept_range *ranges;
};
#define CORE_KEPT_ROOM(cfg)                                                                                            \
	((cfg)->keeps_owners ? (size_t)CORE_KEPT_RANGES * ((cfg)->fragments > 1 ? (cfg)->fragments : 1) : 0)

/* A range that a committed round has read. */
struct core_consumed {
	uint64_t round;
	struct lease_range range;
};

/* The positions that each member reads (leases.c): a function of the records. */
struct core_leases {
	struct leases all;            /* holders are slots */
	struct lease_holder *holders; /* by slot; this and the next two: none in a run without leases */
	struct lease_range *free;
	struct core_consumed *consumed; /* a ring, by ascending round */
	uint32_t consumed_first, n_consumed;
	bool changed; /* since the last document, by a record after which that would be the same */
};
#define CORE_HOLDERS(cfg)     ((cfg)->lease_round > 0 ? (cfg)->max_here : 0)
#define CORE_FREE_LEASES(cfg) ((cfg)->lease_round > 0 ? 4 * (cfg)->max_here + 64 : 0)
#define CORE_CONSUMED(cfg)    ((cfg)->lease_round > 0 ? 64 * (cfg)->max_here : 0)

/* An audit of a chunk of a committed round (audits.c). In each round of the window one more than is
 * drawn may be named. */
enum {
	CORE_AUDITS = (NET_MAX_AUDITS + 1) * (CORE_AUDIT_ROUNDS + 1),
	CORE_AUDITORS = 7 /* asked for one chunk, at most */
};
struct core_auditor {
	uint32_t member;
	uint8_t verdict; /* enum audit_verdict; 0: none yet */
	uint32_t named;
	bool lacks;    /* WRONG without all pieces: `found` is audit_beyond() */
	bool left_out; /* of its document: it has a verdict, and others have not */
	struct rv_hash found;
};
/* In a roster of several rows: what is audited, and what the final owner shows (audits_rows.c). */
struct core_audit_sums {
	uint8_t kind; /* enum audit_kind; OF_AVERAGE: one row, and nothing else is used */
	uint8_t row;  /* OF_SUM: number among those in the mean, of which there are: */
	uint8_t n_rows;
	bool asked, shown; /* the final owner was asked, when asked_round was open; has shown them */
	bool voted;        /* it had voted when the round was committed */
	bool met;          /* it has taken part in a round that opened since */
	uint32_t final;    /* number of the final owner */
	uint64_t asked_round;
	int64_t asked_us;
	uint64_t term; /* of the seals, as the next three */
	struct rv_hash roster;
	struct sums_place place;
	uint8_t keys[NET_MAX_ROWS][NET_KEY_BYTES];
	struct rv_hash sum; /* shown: audit_order.sum */
};
struct core_audit {
	uint64_t round, asked_round; /* asked_round: that was open when the last auditor was asked */
	uint32_t attempt, chunk, owner;
	bool disputed, over;
	uint32_t n, asked; /* auditors, in the order drawn; the first ones were asked */
	struct core_auditor auditors[NET_MAX_ROW];
	struct core_audit_sums sums;
};

struct core_audits {
	int n;
	struct core_audit open[CORE_AUDITS]; /* those that are over stay until the next commit */
	bool changed;                        /* orders, since the last document */
	uint64_t back_to;                    /* round to which the run shall go back; UINT64_MAX: none */
	uint32_t back_for;                   /* the member that lied, or hid its piece */
	struct core_audit_figures figures;
};

/* An audit of a contribution to a committed round (scores.c). */
enum { CORE_SCORES = 256, CORE_SCORE_SEQUENCES = 64 /* that are scored, at most */ };
enum { CORE_ENOUGH_AWAY = 3 /* auditors kept away, of which nobody got it */ };
struct core_scorer {
	uint32_t member;
	/* A round after asked_round was committed with it and the author; and nobody reported the two
	 * as apart. */
	bool together, met;
	uint64_t asked_round;     /* that was open when it was asked */
	struct score_result said; /* verdict 0: nothing yet */
	bool silent;              /* it is not waited for any longer; what it says still counts */
};
struct core_score {
	struct score_order order;
	uint64_t asked_round; /* that was open when the last auditor was asked */
	uint32_t rounds;      /* of the author, up to the audited one; 0: it was struck since, they no longer count */
	bool over, disputed;
	bool struck, appealed; /* struck: its author was, for this */
	uint32_t n, asked;     /* auditors, in the order drawn; the first ones were asked */
	uint32_t from;         /* the first one of the appeal */
	struct core_scorer by[NET_MAX_ROW];
};
struct core_scores {
	int n;
	struct core_score open[CORE_SCORES]; /* those that are over stay until the window is */
	bool changed;                        /* orders, since the last document */
	struct core_score_figures figures;
};

/* The arrays behind the struct: X(type, name, number), by slot or by roster place. The first ten
 * are large, and of each slot, place or round written before it is read: core_init leaves them as
 * they are. */
#define CORE_ARRAYS(X)                                                                                                 \
	X(struct core_member, members, cfg->max_here)                                                                      \
	X(struct member_ref, views.refs, cfg->max_here)                                                                    \
	X(struct member_ref, views.roster, cfg->max_roster)                                                                \
	X(uint64_t, put_away, cfg->max_here *CORE_WORDS_OF(cfg->max_here))                                                 \
	X(uint64_t, past.participants, CORE_PAST_ROUNDS *CORE_WORDS_OF(cfg->max_here))                                     \
	X(struct core_kept_range, kept_owners.ranges, CORE_KEPT_ROOM(cfg))                                                 \
	X(struct lease_holder, leases.holders, CORE_HOLDERS(cfg))                                                          \
	X(struct lease_range, leases.free, CORE_FREE_LEASES(cfg))                                                          \
	X(struct core_consumed, leases.consumed, CORE_CONSUMED(cfg))                                                       \
	X(struct rv_hash, dispute.means, core_most_chunks(cfg))                                                            \
	X(uint64_t, slots.used, CORE_WORDS_OF(cfg->max_here))                                                              \
	X(uint64_t, views.stale, CORE_WORDS_OF(cfg->max_here))                                                             \
	X(uint64_t, rostered, CORE_WORDS_OF(cfg->max_here))                                                                \
	X(uint64_t, left_out, CORE_WORDS_OF(cfg->max_here))                                                                \
	X(uint64_t, spoilers, CORE_WORDS_OF(cfg->max_here))                                                                \
	X(uint64_t, last_commit, CORE_WORDS_OF(cfg->max_here))                                                             \
	X(uint64_t, seen_holding, CORE_WORDS_OF(cfg->max_here))                                                            \
	X(uint64_t, blamed, CORE_WORDS_OF(cfg->max_here))                                                                  \
	X(uint64_t, waited_for, CORE_WORDS_OF(cfg->max_here))                                                              \
	X(uint64_t, roster.voted, CORE_WORDS_OF(cfg->max_roster))                                                          \
	X(uint64_t, roster.taking_part, CORE_WORDS_OF(cfg->max_roster))                                                    \
	X(uint64_t, roster.disbelieved, CORE_WORDS_OF(cfg->max_roster))                                                    \
	X(uint64_t, roster.vouched, CORE_WORDS_OF(cfg->max_roster))                                                        \
	X(uint64_t, roster.tokens, cfg->max_roster)                                                                        \
	X(uint64_t, roster.boots, cfg->max_roster)                                                                         \
	X(uint64_t, roster.rates, cfg->max_roster)                                                                         \
	X(uint64_t, roster.lease_first, cfg->max_roster)                                                                   \
	X(uint64_t, roster.downs, cfg->max_roster)                                                                         \
	X(struct rv_hash, roster.digests, cfg->max_roster)                                                                 \
	X(struct seal, roster.roots, cfg->max_roster)                                                                      \
	X(uint32_t, roster.members, cfg->max_roster)                                                                       \
	X(uint32_t, roster.lease_count, cfg->max_roster)                                                                   \
	X(uint32_t, roster.weights, cfg->max_roster)                                                                       \
	X(uint32_t, roster.stands_out, cfg->max_roster)                                                                    \
	X(uint32_t, slots.numbers, cfg->max_here)                                                                          \
	X(uint32_t, owned, cfg->max_here)                                                                                  \
	X(uint16_t, roster.slots, cfg->max_roster)                                                                         \
	X(uint16_t, slots.order, cfg->max_here)                                                                            \
	X(uint16_t, views.donors.slots, cfg->max_here)                                                                     \
	X(uint16_t, views.behind.slots, cfg->max_here)                                                                     \
	X(uint16_t, slots.heads, 2 * cfg->max_here)                                                                        \
	X(uint16_t, slots.next, cfg->max_here)                                                                             \
	X(struct core_house, houses.at, CORE_SEATS_OF(cfg->max_here))                                                      \
	X(struct core_seat, houses.seats, CORE_SEATS_OF(cfg->max_here))                                                    \
	X(uint16_t, houses.heads, CORE_SEATS_OF(cfg->max_here))                                                            \
	X(uint8_t, roster.codecs, cfg->max_roster)                                                                         \
	X(uint8_t, roster.parts, cfg->max_roster)
#define CORE_WORDS_OF(n) ((size_t)SET_WORDS(n))

/* Participants show what they got (disputes.c): two whose votes differ, or one of few that are
 * alike. */
struct core_dispute {
	uint8_t n;         /* asked; 0: it is not open */
	uint16_t asked[2]; /* places */
	bool given[2];
	int64_t since_us;
	/* Once both are given: the first chunk in which they differ, and its leaves. */
	uint32_t chunk;
	struct rv_hash leaves[2];
	/* By place in the row of each: the seals of the owners there. */
	struct seal seals[2][NET_MAX_ROW];
	struct rv_hash *means; /* of the one that gave first; room for the longest fragment */
	/* The two voters are of two rows, and the owners of the chunk there are asked
	 * (disputes_rows.c). */
	bool of_owners;
	uint16_t voters[2];     /* places of those that were asked before */
	struct seal columns[2]; /* of the final owner, as each shows it */
	bool without_final;     /* one of them is the final owner, and has nothing to show: it is not asked */
	bool has_proof;         /* what is shown proves that an owner signed twice */
	bool has_liar;          /* it shows that the final owner signed one list for its row, and another for the other */
	uint16_t liar;          /* its place */
	struct equivocation proof;
};

struct core {
	struct core_config cfg;
	int words, roster_words; /* of a set of slots, of a set of roster places */
	struct core_slots slots;
	struct core_houses houses;
	struct core_member *members; /* by slot */
	struct banned banned;        /* durable: in memory or not */

	uint64_t round;
	struct rv_hash chain;
	uint64_t snapshot_round;
	struct rv_hash snapshot_hash, snapshot_chain;
	struct rv_hash log[NET_MAX_LOG_DIGESTS]; /* digest of snapshot_round + i, i < round - snapshot_round */
	uint32_t attempt;                        /* the last one recorded of this round; 0: none */
	struct core_roster roster;               /* n == 0: the round is open */
	/* Sets of slots: on a roster of this round; those of them that a later roster was without. */
	uint64_t *rostered, *left_out;
	uint64_t *spoilers;    /* members blamed in this round: it does not count as clean for them */
	uint32_t reopened;     /* rosters of none in this round */
	uint8_t overran;       /* attempts of it before the present one that ran into their deadline */
	uint64_t *last_commit; /* its participants */
	uint64_t term, term_round;
	struct core_past past;
	struct core_kept_owners kept_owners;
	struct core_leases leases;
	struct core_audits audits;
	struct core_scores scores;
	int n_proofs; /* durable: of equivocations; the latest are kept, at n mod NET_MAX_PROOFS */
	struct equivocation proofs[NET_MAX_PROOFS];
	struct rv_hash proven[CORE_PROVEN]; /* what the latest ones proved, at n mod CORE_PROVEN */
	struct core_dispute dispute;        /* volatile */
	bool has_two_roots;                 /* volatile: a member has signed two roots, to be recorded */
	struct equivocation two_roots;
	/* Volatile: the operator's relays, and those that members offer. */
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS];
	/* Volatile. */
	uint64_t *seen_holding;         /* members that have proven the state of `round` since it began */
	enum core_state_kept kept_said; /* as the last event said */
	int64_t not_held_since_us;      /* no present member has proven it since; INT64_MAX: one has */
	/* Volatile. */
	int64_t still_since_us; /* too few have the state and other present members lack it; INT64_MAX: not so */
	int n_pairs;
	struct core_pair pairs[CORE_PAIRS];
	int n_odds;
	struct core_odds odds[CORE_ODDS];
	/* Volatile. */
	uint64_t *blamed;       /* members that this attempt will be blamed on */
	bool owners_apart;      /* an owner cannot be linked with all, and others can: the next attempt has those */
	uint32_t n_dealt;       /* attempts of this round that ended for that */
	uint32_t n_void;        /* and because rows were given different means (disputes_rows.c) */
	uint64_t *waited_for;   /* members for which the open round has waited */
	uint64_t *put_away;     /* by slot, a set each: those distrusted on its accusation alone */
	int64_t reopened_us;    /* time of the last roster of none */
	uint32_t in_vain;       /* rosters of none in a row without a lesson (core_note_lesson) */
	bool learned;           /* since the last roster of none */
	uint32_t lessons;       /* in this round */
	uint32_t split_rosters; /* of this round, without two votes alike */
	int parted;             /* slot of the member that the last such round went on without; -1: none */
	/* Volatile, for people: of the last roster, by slot. */
	uint32_t *owned, owned_of; /* chunks of each; all chunks */

	struct core_queued queue[CORE_QUEUE];
	struct core_record decision; /* the one in the queue, if one is */
	int n_queue;
	uint64_t next_id;
	bool replaying; /* records are replayed, and the document is that of before */
	bool ahead;     /* planted bug only: queue[0] has been applied already */

	struct document doc, scratch;
	struct core_views views;
	/* State at the last core_check: none of it goes back, but for the round by a rollback. */
	struct core_progress {
		uint64_t term, round, seq, seq_durable, next_id;
		uint32_t attempt;
	} checked;
	uint64_t seq_durable; /* documents below may be announced */
	/* Volatile: changes of a document's lists alone (document.c). */
	int64_t lists_until_us; /* time up to which these are paid for */
	bool lists_wait;
	uint64_t seq_planned; /* ... once the queue is durable */

	int64_t lines_deadline_us;     /* of an exchange, by what is reported of lines (slow.c) */
	bool lines_in_rows;            /* the members that were here then make several rows */
	int64_t ready_since_us;        /* min_workers are ready since; INT64_MAX: not */
	int64_t accused_since_us;      /* INT64_MAX: no accusation in this attempt */
	int64_t unclear_until_us;      /* from then on one that says nothing is dead, if it is accused */
	bool was_unclear;              /* since then it was unclear who is dead (suspects.c) */
	bool gathered_anew;            /* in this attempt accusations of the silent have been gathered once more */
	int64_t majority_us;           /* time since which a majority has voted alike; INT64_MAX: none has */
	int64_t gather_us;             /* time for which others are collected from then on */
	int64_t attempt_since_us;      /* time when the roster was frozen, or this coordinator started */
	int64_t reduce_since_us;       /* time when the round's first roster was frozen */
	int64_t exchange_us;           /* duration from there to the commit, in the last round */
	struct core_arrivals arrivals; /* volatile */
	uint64_t no_snapshot_said;     /* round of the last NO_SNAPSHOT event */
	uint64_t split_said;           /* round of the last SPLIT event */
	int64_t now_us;                /* time of the last step */
	int64_t taken_us;              /* time of the last report, if it came after that */

	struct core_event events[CORE_EVENTS];
	int events_first, n_events;
};

/* Sets of places in a row, of NET_MAX_ROW at most, are plain words (ownership.c, shares.c). */
static inline uint64_t core_bit(uint32_t i) {
	return 1ull << i;
}

static inline uint64_t core_first(int n) {
	return n >= 64 ? UINT64_MAX : (1ull << n) - 1;
}

/* Return the fragment that a round exchanges, and its number of chunks. */
static inline uint32_t core_fragment(const struct core *c, uint64_t round) {
	return c->cfg.fragments > 1 ? (uint32_t)(round % c->cfg.fragments) : 0;
}
static inline uint32_t core_chunks(const struct core *c, uint64_t round) {
	return c->cfg.n_chunks[core_fragment(c, round)];
}

static inline int core_count(uint64_t set) {
	return __builtin_popcountll(set);
}

/* Returns the number of participants up to which a roster is one row. */
static inline int core_row_size(const struct core *c) {
	return c->cfg.row_size > 0 ? (int)c->cfg.row_size : NET_MAX_ROW;
}

/* Returns a participant's member, by roster place. */
static inline struct core_member *core_participant(const struct core *c, uint32_t place) {
	return &c->members[c->roster.slots[place]];
}
/* Returns the place of the member in `slot` in the roster; -1: it is no participant. */
static inline int core_place(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	return m->place < c->roster.n && c->roster.slots[m->place] == slot ? m->place : -1;
}
/* A row of a roster, or all of one that is not cut into rows. */
struct core_row {
	uint32_t first, n; /* places */
};
/* Returns the row of the participant at `place`. */
static inline struct core_row core_row_at(const struct core_roster *r, uint32_t place) {
	const int row = core_rows_many(&r->rows) ? core_rows_row_of(&r->rows, (int)place) : -1;
	return row < 0 ? (struct core_row){0, r->n}
				   : (struct core_row){r->rows.plan.first[row], (uint32_t)core_rows_length(&r->rows, row)};
}
/* Returns the row of the member in `slot` in the last roster, if that had several; -1: none. */
static inline int core_last_row(const struct core *c, uint32_t slot) {
	const struct core_rows *r = &c->roster.rows;
	const struct core_member *m = &c->members[slot];
	const bool in =
		core_rows_many(r) && m->place < r->plan.first[r->plan.n_rows] && c->roster.members[m->place] == m->number;
	return in ? core_rows_row_of(r, m->place) : -1;
}
static inline uint32_t core_slot_of(const struct core *c, const struct core_member *m) {
	return (uint32_t)(m - c->members);
}
static inline int core_size_of(const struct core *c, const uint64_t *slots) {
	return set_count(slots, c->words);
}

#endif
