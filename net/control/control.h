/* control.h: the messages between workers and the coordinator: joins, reports and signed run
 * documents.
 *
 * The control plane is *level-triggered*. A worker's report is its whole current state, not an
 * event; the coordinator's document is the run's whole current state. Losing, repeating or
 * reordering either is harmless: the latest one wins (report.boot/seq, document.seq). That is what
 * makes every request idempotent and every crash recoverable.
 *
 * This file: the decoded structs, and their byte encodings (docs/protocol.md). No I/O. Decoders
 * bound everything and return the violated condition as text; they never trust a count before the
 * bytes behind it are there.
 *
 * Versions. A program speaks CONTROL_VERSION_MIN to CONTROL_VERSION. A join states this range; its
 * reply is encoded in the highest version that both speak. A request for a document states it too,
 * and the document's head names the version in use, which reports then follow. So neither side
 * remembers a version, and either may be replaced by another release in the middle of a run. A
 * later version adds fields at the end; fields that a message lacks are zero. */
#ifndef RV_NET_CONTROL_CONTROL_H
#define RV_NET_CONTROL_CONTROL_H

#include "base/bytes.h"
#include "base/commitment.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/leases.h"
#include "net/banned.h"
#include "net/control/audit.h"
#include "net/control/candidate.h"
#include "net/control/probe.h"
#include "net/control/receipt.h"
#include "net/control/score.h"
#include "net/limits.h"
#include "net/seal.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_VERSION = 1, CONTROL_VERSION_MIN = 1 };

/* Returns the highest version that this program speaks: CONTROL_VERSION. It has a file of its own,
 * so that tests can link the next version instead. */
uint32_t control_version(void);
/* Returns the highest version that this program and one that speaks `lowest`..`highest` have in
 * common; 0: none. */
uint32_t control_version_common(uint32_t lowest, uint32_t highest);

/* ---- joining ---- */

/* POST /v1/join. The sender's Ed25519 key is the one of its TLS client certificate. A known key
 * needs no token. */
struct join_request {
	uint32_t protocol;     /* the highest version that the worker speaks */
	uint32_t protocol_min; /* the lowest */
	uint8_t run_id[NET_RUN_ID_BYTES];
	bool has_token;
	uint8_t token[NET_TOKEN_BYTES]; /* from the invite link; one-off */
	char name[NET_NAME_BYTES];      /* for people */
	char software[32];              /* "rivulet 0.1.0" */
};

struct join_reply {
	uint32_t version; /* decoded: that of its encoding */
	uint32_t member;  /* the worker's number for the whole run */
	uint8_t run_id[NET_RUN_ID_BYTES];
	char config[NET_MAX_CONFIG_BYTES]; /* the run's configuration, key = value lines */
	struct rv_hash run_hash;           /* rv_run_hash(run_id, config) */
	uint8_t ticket[NET_SIG_BYTES];     /* the run's signature over (member, key), for peers (net/identity.h) */
};

/* ---- worker -> coordinator ---- */

enum worker_phase {
	WORKER_SYNCING = 1, /* does not hold the state of the current round yet */
	WORKER_TRAINING,    /* inner steps of `round` */
	WORKER_READY,       /* its outer gradient of `round` is encoded; waits for a roster */
	WORKER_REDUCING,    /* all-reduce of (round, attempt) under way */
	WORKER_VOTED,       /* holds the reduced bytes of (round, attempt) on disk; `digest` is its vote */
	WORKER_LEAVING      /* leaves: rounds no longer wait for it */
};

/* How a worker and another member meet, as the worker sees it. In reports one whose link it ended
 * within a minute for what came on it counts as linked: no router keeps the two apart. */
enum path_kind {
	PATH_NONE,     /* not linked, and not tried for long: nothing is known */
	PATH_APART,    /* not linked, though this worker has tried for seconds */
	PATH_DIALED,   /* linked: this worker dialed the other */
	PATH_ACCEPTED, /* linked: the other dialed this worker */
	PATH_PUNCHED,  /* linked: both dialed at one moment (TCP simultaneous open, RFC 9293 section 3.5) */
	PATH_RELAYED,  /* linked: both dialed a relay, which forwards */
	PATH_KINDS
};
/* More about a path that is DIALED, ACCEPTED or PUNCHED, in the same byte of a report. */
enum {
	PATH_LAN = 0x10,  /* the other's address is not a public one */
	PATH_IPV6 = 0x20, /* else IPv4 */
	PATH_MORE = PATH_LAN | PATH_IPV6
};
static inline bool path_is_open(uint8_t path) {
	return path >= PATH_DIALED;
}
static inline enum path_kind path_kind_of(uint8_t path) {
	return (enum path_kind)(path & ~PATH_MORE);
}
/* Returns "dialed", ..., as logs and the status JSON name it; "unknown". */
const char *path_name(uint8_t path);

/* Kinds of data that a worker cannot store at present: report.storage. */
enum {
	REPORT_STORAGE_ROUNDS = 1,      /* results of rounds: it cannot vote, and is in no roster */
	REPORT_STORAGE_CHECKPOINTS = 2, /* checkpoints: its last good one stays */
	REPORT_STORAGE_FETCHED = 4,     /* state from peers: kept in memory */
	REPORT_STORAGE_FULL = 8,        /* with one of these: because there is no room */
	REPORT_STORAGE_KINDS = REPORT_STORAGE_ROUNDS | REPORT_STORAGE_CHECKPOINTS | REPORT_STORAGE_FETCHED
};

/* One participant's contribution, as one owner measured it over the chunks that this owner
 * reduced. */
struct report_measured {
	float norm2;      /* sum of squares; FLT_MAX when it is larger */
	float dot;        /* dot product with the mean; within +-FLT_MAX */
	uint32_t clipped; /* chunks that were scaled down (outer/merge.h) */
};

/* How fast the sender got another member's contribution. */
struct report_receipt {
	uint32_t member;
	uint8_t band; /* receipt_band() of the rate of its whole contribution; not 0 */
};

/* How the sender meets another member. */
struct report_path {
	uint32_t member;
	uint8_t path; /* enum path_kind and more, not PATH_NONE */
};

/* POST /v1/report, at every change of state and at least every heartbeat. */
struct report {
	uint32_t version; /* decoded: that of its encoding */
	/* Microseconds of wall clock when the process started, one more for each snapshot that it
	 * installed since, for each all-reduce that a pause ended, and for each other commitment that
	 * it makes in one round: a later boot supersedes, and what peers hold of an earlier one is
	 * void. */
	uint64_t boot;
	uint64_t term; /* term in which it works: its rounds and votes of another term decide nothing */
	uint64_t seq;  /* grows within a boot; an older report is ignored */
	uint8_t phase; /* enum worker_phase */
	uint64_t round;
	uint32_t attempt; /* REDUCING, VOTED: attempt of the roster; else 0 */
	uint64_t tokens;  /* tokens trained on in this round so far (READY and later: those of its contribution) */
	/* Chunks of the vector that `round` exchanges: all its parameters, or the round's fragment of
	 * them. All members must agree (it follows from the config). */
	uint32_t n_chunks;
	/* REDUCING: places in the roster, ascending, of those that made no progress for too long. */
	uint16_t n_suspects;
	uint16_t suspects[NET_MAX_ROW];
	struct rv_hash digest; /* VOTED */
	struct rv_hash chain;  /* its state_hash(round), zero while SYNCING */
	/* The latest state that its own disk can prove: that of `round`, or of round + 1 when it holds
	 * the reduced bytes in between; nothing else is encoded. A zero chain: none. */
	uint64_t proven_round;
	struct rv_hash proven_chain;
	/* SYNCING: the round from which on it still needs files of others: that of the snapshot it is
	 * fetching, or of the next log entry. Documents reach back to it, and donors keep what they
	 * name, as far as there is room. */
	uint64_t needs_from;
	uint64_t full_round;      /* latest round whose full state hash it has computed */
	struct rv_hash full_hash; /* of full_round; zero: none yet */
	/* Best measured bandwidth of its line in the last all-reduces, or its cap; 0: not known.
	 * Decides ownership, as far as the others' receipts bear it out; never the mean. */
	uint64_t up_bytes_per_s, down_bytes_per_s;
	/* `member` ascends; of members that are not listed nothing is known. Decides ownership: an
	 * owner is linked with its whole row. */
	uint16_t n_paths;
	struct report_path paths[NET_MAX_PEERS];
	/* For people; never decides anything. */
	uint64_t inner_step; /* global inner steps done */
	float loss;          /* mean of the last steps; never NaN: 0 if unknown */
	float tokens_per_s;
	/* The latest held-out loss that its process measured, after so many rounds; 0: none. */
	uint64_t heldout_round;
	float heldout_loss;
	uint64_t tx_bytes, rx_bytes;    /* on its peer sockets since the process started, TLS included */
	uint64_t compute_us, reduce_us; /* spent in inner steps, in all-reduces, since the process started */
	uint8_t storage;                /* set of REPORT_STORAGE_*; 0: all that should be is on its disk */
	/* VOTED: what it measured as an owner, by index of its document's `members`; statistics: they
	 * never decide anything. n_measured 0: nothing, because another process than this one
	 * reduced. */
	uint16_t n_measured;
	struct report_measured measured[NET_MAX_ROW];
	float mean2; /* sum of squares of the mean, over the same chunks */
	/* VOTED: the chunk, counted from 1, whose mean stands out beside its own contribution
	 * (outer/stands_out.h); 0: none. Decides which chunk is audited beside those that are drawn. */
	uint32_t stands_out;
	/* The relay at which it has a station: its place in the document's `relays`, counted from 1; 0:
	 * none. The coordinator takes a place that is not in the list as 0. */
	uint8_t relay;
	/* Addresses at which peers may dial it; the first is SEEN, no other is. */
	uint8_t n_candidates;
	struct candidate candidates[NET_MAX_CANDIDATES];
	uint8_t reach;             /* enum reach_kind, for people: how others reach it */
	uint16_t offers_relay;     /* port of the relay that it runs for others, with its own key; 0: none */
	struct probed_list probed; /* what it found for the coordinator, last */
	/* READY and later, in a run with leases: its contribution has the numbers [lease_first,
	 * lease_first + lease_count) of its stream (document.lease_first). Else 0. */
	uint64_t lease_first;
	uint32_t lease_count;
	/* READY and later: binds it to its contribution before it sees another one's. n 0: it has
	 * none, but a result on its disk. */
	struct commitment commitment;
	uint8_t signatures[COMMITMENT_MAX][NET_SIG_BYTES]; /* of its roots, by index: net/control/signed_roots.h */
	/* For people, in a run that hands out its text: bytes of it that were fetched and kept, by
	 * source, and time in which training waited for it, since the process started. */
	uint64_t text_mirror_bytes, text_member_bytes, text_coordinator_bytes, text_stall_us;
	struct rv_hash own_text; /* of a text that it brought instead; zero: it reads the run's */
	/* Results of the audits that its document orders, as far as they are done. */
	uint8_t n_verdicts;
	struct audit_result verdicts[NET_MAX_AUDITS];
	uint8_t n_scores;
	struct score_result scores[NET_MAX_SCORES];
	bool appeals; /* two others should score the contribution again for which it was struck last */
	/* `member` ascends: those whose contributions it got in its last exchanges. Decides ownership:
	 * what a member says of its own line counts up to what the others got from it. */
	uint8_t n_receipts;
	struct report_receipt receipts[NET_MAX_ROW];
};

/* A message in the reply to a report, for the person who runs the worker: it decides nothing. The
 * reply is 200 with this body, or 204 without one. A worker that does not know the kind ignores
 * it. */
enum notice_kind {
	NOTICE_NONE,
	NOTICE_APART,       /* it and `others` do not reach each other */
	NOTICE_NOT_COUNTED, /* its training is not in the mean, for a `reason` */
	NOTICE_RESTS,       /* it is in no roster before until_round, because of its line */
	NOTICE_STRUCK       /* the same, because of what audits found, for a `reason` */
};
/* STRUCK; numbers are those of enum core_strike_reason. */
enum notice_struck {
	NOTICE_STRUCK_WITHHELD = 1,
	NOTICE_STRUCK_FALSE_AUDIT,
	NOTICE_STRUCK_TRAINING,
	NOTICE_STRUCK_EVADED
};
enum notice_reason {
	NOTICE_UNREACHED = 1, /* the others got nothing from it in `round` */
	NOTICE_DIVERGED,      /* it holds other weights than the majority, and fetches theirs */
	NOTICE_WRONG_SIZE     /* its model has another size than the run's */
};
enum { NOTICE_VERSION = 1, NOTICE_MAX_OTHERS = 8, NOTICE_MAX_BYTES = 96 };
struct notice {
	uint8_t kind;         /* enum notice_kind */
	uint8_t reason;       /* NOT_COUNTED: enum notice_reason; else 0 */
	bool final;           /* STRUCK: another look by others is over: there is no second one */
	bool left_out;        /* APART: rounds begin without it, if enough others are ready */
	uint64_t round;       /* open round */
	uint64_t until_round; /* APART: round that tries it again; RESTS, STRUCK: that it takes part in again */
	uint8_t n_others;     /* APART: 1..NOTICE_MAX_OTHERS, the lowest numbers; else 0 */
	uint32_t others[NOTICE_MAX_OTHERS];
	/* RESTS: bytes/s of its line in the slower direction, what one payload takes it, and the
	 * deadline of an exchange (base/slow_lines.h); else 0. */
	uint64_t rate;
	uint32_t needs_ms, deadline_ms;
};

/* POST /v1/pair-tickets: the peers with which the sender wants to meet through a relay. */
struct pair_request {
	uint32_t version; /* decoded: that of its encoding */
	uint8_t n;
	uint32_t peers[NET_MAX_ROW]; /* ascending */
};
/* Its bytes at most: its head, the number of peers, and each. */
enum { PAIR_REQUEST_MAX_BYTES = 8 + 1 + NET_MAX_ROW * 4 };
/* The reply: a pair ticket (net/identity.h) for the sender and each of those peers that is live and
 * not banned. A relay takes it while no ticket of a later term, or of a round more than
 * NET_RELAY_ROUNDS_BEHIND later, was shown to it. */
struct pair_ticket {
	uint32_t peer;
	uint8_t signature[NET_SIG_BYTES];
};
struct pair_reply {
	uint64_t term, round;
	uint8_t n;
	struct pair_ticket tickets[NET_MAX_ROW]; /* `peer` ascends */
};
/* The reply's bytes at most: its head, term, round, n, and a ticket for every peer. */
enum { PAIR_REPLY_MAX_BYTES = 8 + 8 + 8 + 1 + NET_MAX_ROW * (4 + NET_SIG_BYTES) };

/* Returns true for two boots of one process: it adds one for each snapshot that it installs, and no
 * two processes start within a millisecond. */
bool report_same_process(uint64_t boot_a, uint64_t boot_b);

/* ---- coordinator -> worker ---- */

enum run_phase {
	RUN_WAITING = 1, /* fewer than min_workers: hold, keep the state */
	RUN_OPEN,        /* round `round` is open: train */
	RUN_REDUCE,      /* roster frozen: all-reduce (round, attempt) among `members` */
	RUN_DONE         /* all rounds committed: `round` is the final one + 1 */
};

struct member_ref {
	uint32_t member;
	uint32_t weight; /* REDUCE: in the mean; else 0 */
	uint64_t
		boot; /* REDUCE: of the process that holds its contribution (report.boot): what a former one sent is void */
	uint8_t key[NET_KEY_BYTES]; /* Ed25519: the only thing that authenticates it */
	/* Addresses at which it may be dialed, in this order: one at least. A PRIVATE one is for
	 * members in the same house (candidates_share_host). */
	uint8_t n_candidates;
	struct candidate_ref candidates[NET_MAX_CANDIDATES];
	uint8_t relay;  /* the one at which it has a station: place in `relays`, counted from 1; 0: none */
	uint16_t place; /* REDUCE: in the whole roster; else 0 */
	uint8_t row;    /* REDUCE: the row of that place; else 0 */
	/* REDUCE: how its contribution is sent, because of its line (base/slow_lines.h); else 0. */
	uint8_t codec; /* the codec's id; 0: the run's */
	uint8_t part;  /* k: every k-th chunk of it (slow_contributes); 0: all */
	/* REDUCE, in `members`: the root over the chunks of its contribution in that codec
	 * (base/merkle.h), as the member has signed it; else zero. */
	struct seal contribution;
};

/* A relay (net/relay/): a server that forwards between members that do not reach each other. */
struct relay_ref {
	uint8_t key[NET_KEY_BYTES]; /* of its TLS certificate */
	char addr[NET_ADDR_BYTES];
};

/* Chunks [first, first + count) are reduced by members[owner]. Ranges are ascending and cover [0,
 * n_chunks) exactly. */
struct owner_range {
	uint32_t first, count;
	uint16_t owner; /* index into members */
};

/* Chunks that the receiver owns in its row, and who owns them in the others: [first, first +
 * count), by row an index into `column`; NET_NO_OWNER: the receiver's own row, or one that is not
 * in the mean. */
enum { NET_NO_OWNER = 0xff };
struct section {
	uint32_t first, count;
	uint8_t owner[NET_MAX_ROWS];
};

/* A snapshot before the latest one that a member is still fetching. */
struct kept_snapshot {
	uint64_t round;
	struct rv_hash hash; /* global_full_hash; zero: of round 0 */
};

/* The run as one member sees it: the coordinator signs one document for each. The round, the state
 * and the relays are the same for all; the lists of members name those that the receiver deals
 * with. */
struct document {
	uint32_t version; /* decoded: that of its encoding */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint64_t seq; /* strictly increasing over the life of the run, across restarts of the coordinator */
	/* How often the operator has taken committed rounds back, and the round with which the last
	 * such term began: only in a later term can a round be followed by an earlier one. */
	uint64_t term, term_round;
	uint8_t phase; /* enum run_phase */
	uint64_t round;
	uint32_t attempt;     /* REDUCE: 1, 2, ...; else 0 */
	uint64_t final_round; /* rounds in the run */
	struct rv_hash run_hash;
	struct rv_hash chain; /* state_hash(round) */
	/* Start of a joiner: the latest full state that a majority vouched for, and every digest
	 * since. */
	uint64_t snapshot_round;
	struct rv_hash
		snapshot_hash; /* global_full_hash at snapshot_round; zero while unknown (round 0: everyone makes theta0) */
	struct rv_hash snapshot_chain;           /* state_hash(snapshot_round) */
	uint16_t n_log;                          /* == round - snapshot_round, <= NET_MAX_LOG_DIGESTS */
	struct rv_hash log[NET_MAX_LOG_DIGESTS]; /* digest of round snapshot_round + i */
	/* The digests before it, for those who started from an earlier snapshot or were away for a few
	 * rounds: a joiner whose snapshot takes longer to fetch than the run takes to vouch for the
	 * next one still gets in. */
	uint16_t n_older;                          /* n_older + n_log <= NET_MAX_LOG_DIGESTS, n_older <= snapshot_round */
	struct rv_hash older_chain;                /* state_hash(snapshot_round - n_older) */
	struct rv_hash older[NET_MAX_LOG_DIGESTS]; /* digest of round snapshot_round - n_older + i */
	/* Files that members still need to fetch: a member that has them keeps them. */
	uint16_t n_kept_rounds; /* number of log entries, those just before snapshot_round; <= n_older */
	uint16_t n_kept_snapshots;
	struct kept_snapshot kept_snapshots[NET_MAX_KEPT_SNAPSHOTS]; /* ascending, of those rounds */
	/* Members that the operator removed, ascending. Their tickets are void: no member keeps or
	 * takes a link of theirs. */
	struct banned banned;
	/* REDUCE: the participants of one row in roster order: sums are taken in this order. With one
	 * row that is the whole roster, by ascending member number. Otherwise: live members that hold
	 * state_hash(round): a joiner may fetch from them, and members stay linked with them;
	 * ascending. */
	uint16_t n_members;
	struct member_ref members[NET_MAX_ROW];
	/* Members that are behind; if they are more, others in each round: a member that reads this
	 * keeps a link to them, so that members with the state reach those that cannot be dialed. Not
	 * in `members`; ascending; no weight, no boot. */
	uint16_t n_syncing;
	struct member_ref syncing[NET_MAX_SYNCING];
	/* In the operator's order; a member has its station at one that it chose. */
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS];
	/* The latest proofs that owners gave different members different means: those are banned, too.
	 * A worker checks each itself. */
	uint8_t n_proofs;
	struct equivocation proofs[NET_MAX_PROOFS];
	/* REDUCE only. */
	/* Names the attempt and its roster, the process and the commitment of each participant, in all
	 * rows: what owners sign is about this (net/seal.h). */
	struct rv_hash roster_hash;
	/* Participants whose votes differ: each shows what it got (net/control/evidence.h). */
	uint8_t n_asked;
	uint32_t asked[2];
	/* The attempt that was committed in the last round before this one that exchanged the same
	 * chunks; 0: none that the coordinator knows of. */
	uint32_t former_attempt;
	uint32_t deadline_ms; /* how long this attempt may take, from when this is read; 0: no limit */
	/* How long the exchange should take, by which slow members rest, or send less; 0: it is not
	 * limited, or no line is known. */
	uint32_t slow_deadline_ms;
	uint32_t n_chunks;
	uint16_t n_ranges;
	struct owner_range ranges[NET_MAX_RANGES];
	/* REDUCE: how the roster is divided. 0 and 1: not at all, and the rest is not used. More:
	 * `members` and `ranges` are those of row `row`; each row makes the weighted sum of its
	 * contributions, and the owners of the same chunks in all rows make the mean of these sums. */
	uint8_t n_rows, row;
	uint16_t n_roster;                  /* participants of all rows */
	uint32_t row_weights[NET_MAX_ROWS]; /* sum of the weights of a row; 0: it is not in the mean */
	uint32_t
		row_since[NET_MAX_ROWS]; /* attempt in which the row's roster last changed: its sums of earlier ones are void */
	uint8_t n_sections;          /* the receiver's; 0: it owns nothing */
	struct section sections[NET_MAX_SECTIONS]; /* `first` ascends; they do not overlap */
	/* The sequences of the text that the receiver holds and that no commit has consumed, in the
	 * order in which it reads them. The first of leases[0] has the number lease_first in the
	 * receiver's stream: all that was ever granted to it, in this order, with numbers that only
	 * grow. None: the run has no leases, or it holds nothing, or phase DONE. */
	uint64_t lease_first; /* 0: n_leases is 0 */
	uint8_t n_leases;
	struct lease_piece leases[NET_MAX_LEASES];
	/* In a run with audits: audit_promise_of() the secret that draws the audits of `round`, and the
	 * secret that has drawn those of the round before; zeros: there is none. */
	struct rv_hash audit_promise, audit_secret;
	uint8_t n_audits;
	struct audit_order audits[NET_MAX_AUDITS]; /* the receiver's */
	uint8_t n_scores;
	struct score_order scores[NET_MAX_SCORES]; /* the receiver's */
	/* The owners that `sections` name, by ascending place. */
	uint16_t n_column;
	struct member_ref column[NET_MAX_COLUMN];
};

/* Encoders write into `w` (the caller checks w->failed), in the `version` that the reader
 * speaks (CONTROL_VERSION_MIN..control_version()); decoders fill *out from n bytes, all of which
 * they must consume. RV_E_INVALID names the field; RV_E_PROTOCOL: a version that this program does
 * not speak. A join request of another version is decoded as far as its layout is the same for all:
 * the coordinator refuses it, with the name of the software. */
void join_request_encode(const struct join_request *m, struct rv_writer *w);
enum rv_err join_request_decode(const void *p, size_t n, struct join_request *out, struct rv_errtext *et);
void join_reply_encode(const struct join_reply *m, uint32_t version, struct rv_writer *w);
enum rv_err join_reply_decode(const void *p, size_t n, struct join_reply *out, struct rv_errtext *et);
void report_encode(const struct report *m, uint32_t version, struct rv_writer *w);
enum rv_err report_decode(const void *p, size_t n, struct report *out, struct rv_errtext *et);
/* Both: kind is not NOTICE_NONE. RV_E_PROTOCOL: another NOTICE_VERSION, or a kind or reason that is
 * not known. */
void notice_encode(const struct notice *m, struct rv_writer *w);
enum rv_err notice_decode(const void *p, size_t n, struct notice *out, struct rv_errtext *et);
void document_encode(const struct document *m, uint32_t version, struct rv_writer *w);
enum rv_err document_decode(const void *p, size_t n, struct document *out, struct rv_errtext *et);

void pair_request_encode(const struct pair_request *m, uint32_t version, struct rv_writer *w);
enum rv_err pair_request_decode(const void *p, size_t n, struct pair_request *out, struct rv_errtext *et);
void pair_reply_encode(const struct pair_reply *m, uint32_t version, struct rv_writer *w);
enum rv_err pair_reply_decode(const void *p, size_t n, struct pair_reply *out, struct rv_errtext *et);

/* Returns how the sender meets `member`; PATH_NONE: it does not say. */
uint8_t report_path(const struct report *m, uint32_t member);
/* Adds a member above all that are listed. Nothing is added for PATH_NONE, or where the list is
 * full. */
void report_add_path(struct report *m, uint32_t member, uint8_t path);

/* Copies what is used of `from`: much less than all of it. */
void document_copy(struct document *to, const struct document *from);

/* Returns the number of participants of a REDUCE document, in all rows. */
static inline int document_participants(const struct document *d) {
	return d->n_rows > 1 ? d->n_roster : d->n_members;
}

/* Lists the members with which the receiver keeps links: `members`, `syncing`, and the column of a
 * roster in rows. Returns how many. */
enum { DOCUMENT_MAX_LINKED = NET_MAX_ROW + NET_MAX_SYNCING + NET_MAX_COLUMN };
int document_linked(const struct document *d, struct member_ref out[DOCUMENT_MAX_LINKED]);

/* Returns true if the member is asked what it got in the attempt of the document. */
static inline bool document_asks(const struct document *d, uint32_t member) {
	bool asks = false;
	for (int i = 0; i < d->n_asked; i++)
		asks = asks || d->asked[i] == member;
	return asks && d->phase == RUN_REDUCE;
}

/* Returns the index of `member` in d->members, or -1. */
int document_find(const struct document *d, uint32_t member);

/* Returns the digest of the committed round; NULL: it is not listed. */
const struct rv_hash *document_digest(const struct document *d, uint64_t round);
/* Returns the first round that is listed: snapshot_round - n_older. */
uint64_t document_reaches_to(const struct document *d);

/* A signed document is the exact bytes sent: signature (64, Ed25519 by the run key over "rivulet
 * document" | bytes) | bytes. The signer and the verifier live in net/identity.h. */

#endif
