/* internal.h: the state behind service.h, shared by these files and included by no other.
 *
 * service.c         requests, records
 * joins.c           who becomes a member; invites.c, askers.c: who waits for approval
 * candidates.c      addresses of members
 * stats.c           committed rounds, news
 * waiting.c         missing members; not_held.c: nobody has the run's state
 * storage.c         failing disks
 * data_shards.c     workers that read the same text; text.c: who trains on what
 * outliers.c        unusual members
 * evidence.c        votes that differ; audits.c, audit_key.c: audits and their secret
 * slow.c            members whose lines cannot make the deadline
 * pair_tickets.c    tickets for meetings at a relay; reach_test.c: reachability tests
 * relay.c           the coordinator's relay; relay_offers.c: members' own
 * about.c           what the operator says of the run
 * status.c, metrics.c, time.c, heldout.c, loss_chart.c   output for people */
#ifndef RV_COORDINATOR_SERVICE_INTERNAL_H
#define RV_COORDINATOR_SERVICE_INTERNAL_H

#include "base/loss_curve.h"
#include "coordinator/service/contributions.h"
#include "coordinator/service/offered_relays.h"
#include "coordinator/service/reach_tests.h"
#include "coordinator/service/service.h"

#include <stdio.h>

/* Totals of a member's process at the last commit, from which its work since is computed. */
struct mark {
	uint64_t boot, tx_bytes, compute_us, reduce_us;
};

/* Times of the first report of a member's process at this coordinator, and of the most recent. */
struct member_time {
	uint64_t boot;              /* report.boot */
	int64_t since_us, until_us; /* monotonic */
	uint64_t first_compute_us, first_reduce_us, last_compute_us, last_reduce_us;
};

/* The state of a member's disk as last logged. */
struct storage_told {
	uint8_t set;      /* report.storage: all bits seen since it was last logged as well */
	int64_t clear_us; /* its reports are clear since then; 0: they are not */
};

/* Ways in which a member differs from the others (outliers.c). */
enum service_oddity { SERVICE_ODD_LOSS, SERVICE_ODD_CLIPPED, SERVICE_ODD_COSINE, SERVICE_ODDITIES };
enum { SERVICE_ODD_ROUNDS = 3 };
struct oddity {
	uint8_t rounds; /* odd ones less usual ones, within 0..SERVICE_ODD_ROUNDS */
	bool named;
};

/* The last contribution of a member, since this coordinator started. */
struct outlier {
	uint64_t round; /* of `last` */
	struct contribution_figures last;
	struct oddity odd[SERVICE_ODDITIES];
};

/* The relays' proofs of a member that were found to hold, and the pace at which others are
 * checked. */
struct member_proofs {
	struct candidate at[NET_MAX_CANDIDATES];
	unsigned next; /* place in `at` of the next one, modulo its length */
	int64_t paid_until_us;
};

/* The member in a slot: figures and texts since this coordinator started. */
struct service_member {
	uint32_t member; /* its number + 1; 0: nobody has had the slot yet */
	struct mark mark;
	struct member_time time;
	struct storage_told storage;
	struct rv_hash own_text_told; /* report.own_text as last logged */
	struct outlier outlier;
	int64_t told_until_us; /* its events are counted up to then (may_tell) */
	bool told_quiet;       /* and that events of it are dropped was logged */
	uint64_t dropped_told; /* kinds of addresses logged as not announced (candidates.c) */
	struct member_proofs proofs;
	char seen[NET_ADDR_BYTES]; /* host of its last report; "": none since the start */
};

/* The member that measures the held-out loss after so many rounds. */
struct service_first {
	uint64_t rounds;
	uint32_t member;
};
/* The held-out loss by round, as members claim it (heldout.c). */
enum { SERVICE_FIRSTS = 64 };
struct service_heldout {
	struct loss_curve curve;
	uint32_t claimed_by;                        /* member of the last point; NET_NO_MEMBER: of before the start */
	struct service_first first[SERVICE_FIRSTS]; /* ring: of the latest commits since the start or a rollback */
	uint64_t n_first;
};

/* A line for people. */
struct news {
	int64_t wall_us;
	enum rv_level level;
	char text[320];   /* for everybody: no address, host, key or path */
	char detail[200]; /* for the operator; "": none */
};

struct service {
	struct service_config cfg;
	struct run_config run;
	char config[NET_MAX_CONFIG_BYTES];
	struct run_about about; /* without round_s */
	struct rv_hash run_hash;
	struct core *core;
	int64_t started_us;

	struct delivery *delivery;
	struct document document; /* of one member, on its way there */

	bool look_due; /* the core has taken reports since looked_us */
	int64_t looked_us;
	bool joins_gather; /* their records wait to be one transaction: service_write_joins */
	bool store_full;
	enum rv_err fault; /* final */
	struct rv_errtext fault_text;

	struct commit_stats history[SERVICE_HISTORY]; /* oldest first */
	int n_history;
	struct service_heldout heldout;
	uint64_t most_tokens; /* that one contribution can stand for */
	uint32_t most_chunks; /* of a fragment */
	uint64_t total_tokens, rounds_here;
	int64_t last_commit_us;
	int64_t waiting_since_us; /* too few workers since; INT64_MAX: enough */
	bool waiting_told, shards_told;
	struct service_member members[NET_MAX_HERE]; /* by slot */
	uint64_t joins_refused, joins_refused_told;  /* since the start; of these, those logged */
	int64_t refused_told_us;
	FILE *rounds;
	const struct relay_totals *relay; /* NULL: none */
	const struct text_totals *text;   /* NULL: none */
	struct reach_tests reach;
	struct offered_relays offered;

	struct news news[SERVICE_NEWS]; /* ring */
	uint64_t n_news;
	bool told_minimum;   /* that min-workers is low for its rosters */
	bool told_unaudited; /* that its last roster is audited by nobody */
};

/* ---- service.c ---- */

/* Makes all decisions of the core durable, in their order, and announces them. RV_E_BUSY: the disk
 * is full, and they wait; other faults of the store are final. */
enum rv_err service_pump(struct service *s, int64_t now_us, struct rv_errtext *et);

/* ---- about.c ---- */

/* Reads what the operator says of the run from the store. */
enum rv_err service_load_about(struct service *s, struct rv_errtext *et);
json_t *service_about_json(const struct service *s);

/* ---- heldout.c ---- */

/* Reads the curve from the store; a text that is damaged is logged, and the curve begins anew. */
enum rv_err service_load_heldout(struct service *s, struct rv_errtext *et);
/* Records who measures the loss after this round. Called before the core has the commit, as
 * service_watch_outliers. */
void service_note_first(struct service *s, const struct core_record *rec);
/* Takes and keeps what a report claims, if it is news from the member that was to measure it. */
void service_take_heldout(struct service *s, uint32_t slot, const struct report *rep);
/* Drops the losses after `round`, which the run took back. */
void service_rewind_heldout(struct service *s, uint64_t round);
/* Returns {"round", "loss"} of the latest; null: none is known. */
json_t *service_heldout_json(const struct service *s);

/* ---- candidates.c ---- */

/* Replaces the candidates of a report by those that are announced, in the order in which others
 * should dial them; logs once for each member and kind that one is dropped, and that one is false.
 * The faults of member_address_seen. */
enum rv_err service_confirm_candidates(struct service *s, int64_t now_us, uint32_t slot, const uint8_t *key,
									   const struct member_sight *sight, struct report *rep, struct rv_errtext *et);

/* ---- invites.c ---- */

/* Checks that a key that is no member's may become one by the invite of its request, as of now, in
 * the store; with the operator's approval where the invite needs it. If joins that wait may take
 * its last uses, they are made durable first. RV_E_AUTH names the next step; RV_E_WAITING;
 * RV_E_BUSY (disk full); faults of the store. */
enum rv_err service_admit(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						  const struct join_request *rq, struct rv_errtext *et);
/* Says in advance whether service_admit would refuse the invite, as far as the store shows: no
 * promise. RV_E_AUTH as there; faults of the store. */
enum rv_err service_look_at_invite(const struct service *s, const uint8_t key[NET_KEY_BYTES],
								   const struct join_request *rq, struct rv_errtext *et);
/* Looks the token up. *holds: it may still admit the holder of `key`, once approved. */
enum rv_err service_holds_invite(const struct service *s, const uint8_t key[NET_KEY_BYTES],
								 const uint8_t token[NET_TOKEN_BYTES], bool *holds, struct rv_errtext *et);
/* Returns the fault for a request: a full disk may be tried again (RV_E_BUSY); RV_E_FULL is a run
 * that is full of members. */
enum rv_err service_for_the_asker(enum rv_err e);

/* ---- askers.c ---- */

/* All that ask for approval, or were decided on and are no members. */
struct service_askers {
	struct store_asker at[STORE_ASKERS_MAX];
	int n;
};
enum rv_err service_load_askers(const struct service *s, struct service_askers *out, struct rv_errtext *et);
/* Returns the one with this key, or NULL, as for one that asked too long ago. */
const struct store_asker *service_find_asker(const struct service_askers *all, const uint8_t key[NET_KEY_BYTES]);
/* Returns RV_OK once the operator has approved the holder of `key`; adds it to those that ask, if
 * it is new and there is room. RV_E_WAITING, RV_E_AUTH (refused), faults of the store. */
enum rv_err service_ask_approval(struct service *s, const uint8_t key[NET_KEY_BYTES], const char *name,
								 const struct store_invite *in, struct rv_errtext *et);
/* Returns how many of these are approved by the invite `id`, but for the holder of `key`: uses of
 * it are kept for them. *own: that one is approved by it, too. Both may be NULL. */
uint32_t service_count_approved(const struct service_askers *all, int64_t id, const uint8_t key[NET_KEY_BYTES],
								bool *own);
/* Returns how many wait for the operator's decision; 0 if the store cannot be read. */
int service_count_waiting(const struct service *s);

/* ---- waiting.c ---- */

/* Logs which workers are missing once the run has waited long. Called after every request and
 * tick. */
void service_watch_waiting(struct service *s, int64_t now_us);
/* Returns the seconds that the run has waited; < 0: it does not wait. */
double service_waiting_s(const struct service *s, int64_t now_us);
/* Sets `out` (slots) to the members that neither take part nor are banned. */
void service_missing(const struct service *s, uint64_t out[CORE_HERE_WORDS]);

/* ---- reach_test.c ---- */

/* Records where a member is seen, and what it found as a prober. Called after every report. */
void service_take_probed(struct service *s, int64_t now_us, uint32_t slot, const struct member_sight *sight,
						 const struct probed_list *probed);
/* Writes the probes that the holder of `key` shall make; returns false if there is none. */
bool service_probes(const struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], struct rv_writer *reply);
/* Returns true if members found the holder of `key` at the address `addr` of another host than it
 * is seen at (CANDIDATE_GIVEN); else has it probed, as often as that is allowed. *waits: nobody has
 * found anything yet. */
bool service_confirms_given(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
							const struct member_sight *sight, const char *addr, bool *waits);

/* Begins a test, or reports on the one that the same question began; false: too many tests. */
bool service_probe_for(struct service *s, int64_t now_us, const struct member_sight *sight,
					   const struct reach_question *q, struct reach_finding *found);

/* ---- relay_offers.c ---- */

/* Takes the port of a relay that the member offers in its report (0: none), has it tested, and
 * lists it once it was reached. */
void service_take_offer(struct service *s, int64_t now_us, uint32_t slot, const struct member_sight *sight,
						const uint8_t key[NET_KEY_BYTES], uint16_t port);
/* Lists the relays of those that are live now. */
void service_list_relays(struct service *s, int64_t now_us);

/* ---- relay.c ---- */

/* Returns the figures of the coordinator's relay, null if it has none. */
json_t *service_relay_json(const struct service *s);
/* Writes the same as metrics. */
void service_relay_metrics(const struct service *s, FILE *f);

/* ---- text.c ---- */

/* Logs that a member trains on a text of its own, once, and that it no longer does. Called after
 * every report. */
void service_watch_text(struct service *s, int64_t now_us, uint32_t slot);
/* Return the figures of a member and of the coordinator; null in a run that does not hand out its
 * text. `details`: for the operator. */
json_t *service_member_text_json(const struct service *s, const struct report *last, bool details);
json_t *service_text_json(const struct service *s);
/* Writes the same as metrics. */
void service_text_metrics(const struct service *s, FILE *f);

/* ---- storage.c ---- */

/* Logs a member that begins to lack room for what it must store, or has it again. Called after
 * every report of its. */
void service_watch_storage(struct service *s, int64_t now_us, uint32_t slot);
/* Writes the names of a set of REPORT_STORAGE_*: "results of rounds, checkpoints". */
enum { SERVICE_STORAGE_BYTES = 80, SERVICE_MEMBER_BYTES = NET_NAME_BYTES + 24 };
/* Writes "member 3 ada", or "member 3" if it has no name. */
void service_member_text(const struct core_member_view *v, char out[SERVICE_MEMBER_BYTES]);
void service_storage_text(uint8_t set, char out[SERVICE_STORAGE_BYTES]);

/* ---- time.c ---- */

/* Records a report's times. Called after every report. */
void service_watch_time(struct service *s, uint32_t slot, const struct report *rep, int64_t now_us);

/* ---- outliers.c ---- */

/* Records a commit's figures, and logs members that are far from the others. Called before the core
 * has the commit: the roster is then its, and the members' latest reports are their votes, with the
 * owners' measurements. */
void service_watch_outliers(struct service *s, const struct core_record *rec);

/* ---- data_shards.c ---- */

/* Logs once that some workers read the same text. Called after every report. */
void service_watch_shards(struct service *s);

/* ---- stats.c ---- */

struct commit_stats service_commit_stats(const struct service *s, const struct core_record *rec, int64_t now_us);
/* Records a durable commit: in the history, the marks, the JSON lines. */
void service_note_commit(struct service *s, const struct commit_stats *c, int64_t now_us);
/* Records a rollback: the rounds that it takes back leave the history and the totals. */
void service_note_rollback(struct service *s, const struct core_record *rec, int64_t now_us);
/* Logs a durable record for people. */
void service_tell_record(struct service *s, const struct core_record *rec);
/* Returns true if an event of the member may be logged, and counts it. A member causes events by
 * its reports, at any rate: TELL_AT_ONCE of them are logged, then one in TELL_EVERY_US. The first
 * dropped one is replaced by a line about that, until the member was calm for long enough to log as
 * many again. */
bool service_may_tell(struct service *s, uint32_t member, int64_t now_us);
/* Logs the core's events as sentences. Limits each member's to a burst, then a few a minute: its
 * reports cause them. */
void service_tell_events(struct service *s, int64_t now_us);
/* Counts a join that was refused for this reason, and logs that now and then. */
void service_note_refused_join(struct service *s, int64_t now_us, const char *why);
/* Logs a sentence for people, and `detail` ("": none) for the operator only: an address, a path, a
 * command with one. */
void service_tell_operator(struct service *s, enum rv_level level, const char *name, const char *detail,
						   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define service_tell(s, level, name, ...) service_tell_operator(s, level, name, "", __VA_ARGS__)

/* ---- not_held.c ---- */

/* Returns true if all rounds are committed, and the members with the last state have merely gone:
 * nothing is to be done. */
bool service_is_over(const struct service *s, const struct core_kept *kept);
/* Writes "rivulet-coordinator rollback --dir DIR --to-round 7" (`dir` NULL: "DIR", for everybody);
 * "" if no earlier round is known to be on a disk, or there is no reason to. */
void service_rollback_command(const struct service *s, const struct core_kept *kept, const char *dir, char *out,
							  size_t cap);
/* Logs the core's event `text`, and the next step. */
void service_tell_not_held(struct service *s, uint64_t round, const char *text);
struct service_rolled_back {
	uint64_t from_round, tokens;
	bool unproven; /* no present member had proven the round that the run is back at */
};
void service_describe_rollback(const struct service *s, const struct service_rolled_back *r,
							   char text[SERVICE_ROLLBACK_BYTES]);

/* ---- audit_key.c ---- */

/* Loads the store's secret for core_config.audit_secret; makes it, if the store has none. Faults of
 * the store. */
enum rv_err service_load_audit_key(struct store *store, struct rv_hash *out, struct rv_errtext *et);

/* ---- evidence.c ---- */

/* Logs what came of votes that differ; returns false for other events. */
bool service_tell_evidence(struct service *s, const struct core_event *ev);
json_t *service_proofs_json(const struct service *s); /* the latest proofs of equivocation */

/* ---- audits.c ---- */

/* Logs what an audit of an average found; returns false, and does nothing, for other events. */
bool service_tell_audit(struct service *s, const struct core_event *ev);
/* Returns null in a run without audits, or {"chunks", "window", "rollback"}, which are the run's,
 * and {"drawn", "right", "wrong", "unresolved", "open"}, audits since this process started. */
json_t *service_audits_json(const struct service *s);
/* Returns null in a run whose training is not audited, or {"share", "window"}, which are the run's,
 * and {"drawn", "worthy", "worthless", "unresolved", "evaded", "open", "appeals", "lifted"}, since
 * this process started. */
json_t *service_scores_json(const struct service *s);
void service_audits_metrics(const struct service *s, FILE *f);
/* Returns {"rounds", "strikes", "reason", "quarantined_until", "appealed"}: reason and round null
 * without a strike; appealed: others have looked again at the last one, and not lifted it. */
json_t *service_reputation_json(const struct core_reputation *r);

/* ---- slow.c ---- */

/* Logs what becomes of a member because of its line: CORE_EVENT_RESTS, CORE_EVENT_SENDS_LESS. */
void service_tell_slow(struct service *s, const struct core_event *ev);
/* Returns null, or {"rests_until", "codec", "part", "why"}, each null where it is not so. */
json_t *service_slow_json(const struct core_slow *slow);

#endif
