/* internal.h: the platform around the session core (worker/session/core.h), shared by these files
 * and included by no other.
 *
 * session.c         the loop, signals, the end
 * preflight.c       what a run asks of this machine; disk_plan.c, memory.c: whether it has that
 * consent.c         shows it to the person, and asks
 * join.c            until it is a member; reach_test.c: how others reach it
 * start.c           makes all parts; inputs.c: text, tokenizer, initial weights
 * trainer.c, disk.c, links.c, control.c   the four tables of the session core
 * candidates.c      addresses in reports; network.c: changes of the network
 * reach.c           stations at relays; own_relay.c: the relay that it runs for others
 * text.c            the run's text; own_text.c: one that a person brings; text_donor.c: for others
 * audit.c, score.c, repeat.c  audits of others; evidence.c: what it got, where votes differ
 * weigh.c           what one member's contributions did; weigh_job.c, weigh_results.c
 * allowed.c         what its person allows now; limits.c, traffic.c: processors, GPU, line
 * rest.c            a pause that lasts; adjust.c: settings that change
 * serving_key.c     another key serves the run
 * notice.c          the coordinator's notices
 * events.c, metrics.c, trace_lines.c, history.c   the log and the records in its directory
 * progress.c, status.c, local.c, samples.c        output for the person; the page */
#ifndef RV_WORKER_SESSION_INTERNAL_H
#define RV_WORKER_SESSION_INTERNAL_H

#include "base/clock.h"
#include "base/event.h"
#include "base/jobs.h"
#include "base/loss_curve.h"
#include "net/mesh/probe.h"
#include "net/mesh/probe_answer.h"
#include "train/memory/report.h"
#include "train/metrics.h"
#include "train/text/data.h"
#include "train/text/sequence_order.h"
#include "worker/allow/allow.h"
#include "worker/audit/auditor.h"
#include "worker/audit/kept_source.h"
#include "worker/join/control_http.h"
#include "worker/join/membership.h"
#include "worker/join/reach_check.h"
#include "worker/join/reflection.h"
#include "worker/join/terms.h"
#include "worker/local/local_server.h"
#include "worker/mesh/line_meter.h"
#include "worker/mesh/meshlink.h"
#include "worker/mesh/receipts.h"
#include "worker/reach/reach.h"
#include "worker/sensors/sensors.h"
#include "worker/session/core.h"
#include "worker/session/session.h"
#include "worker/session/sleep_watch.h"
#include "worker/session/trace.h"
#include "worker/state/statestore.h"
#include "worker/text/text_donor_store.h"
#include "worker/text/text_thread.h"
#include "worker/trainer/trainer.h"

enum { SESSION_PATH_BYTES = 320 };

/* For metrics; sums since the start of the run. */
struct session_sums {
	uint64_t tokens; /* of all workers */
	uint64_t bytes_sent_before, formula_bytes, bytes_donated_before;
	int64_t reduce_us, overlap_us; /* since the process started; the part during which inner steps ran */
	int64_t applied_us, compute_then, reduce_then, overlap_then, copy_then; /* at the last apply */
	int64_t reduce_started_us, reduce_compute_us; /* 0: not under way; the compute until then */
	struct reduce_info exchanged;                 /* by the latest all-reduce with this worker; zero once written */
	uint32_t attempts;                            /* that it took */
	uint32_t participants, rows;                  /* of the latest roster */
	uint64_t weights, own_weight;                 /* their sum; 0: this worker is not in the roster */
	uint64_t own_tokens;                          /* of this worker's latest contribution */
	uint64_t given_rounds, given_tokens; /* contributions to committed rounds, their tokens, since the first start */
	uint64_t round_tokens;               /* of all contributions to the latest round with this worker; 0: none yet */
	double eval_loss;                    /* after eval_round, the last; NaN: not measured */
	uint64_t eval_round;
};

/* Whether the last round counted this worker's contribution, and if not why: its person's first
 * question. */
struct session_history {
	uint64_t measured_round; /* the latest held-out loss that this process measured; 0: none */
	double measured;
	bool has_asked; /* the coordinator for `heldout`: when, and in which round */
	int64_t asked_us;
	uint64_t asked_round;
	bool is_loaded; /* that of earlier processes */
	bool has_round; /* a round was applied in this process */
	uint64_t round; /* the last one */
	bool counted;   /* this worker's contribution is in its mean */
	char why_not[RV_ERRTEXT_BYTES];
	bool was_paused; /* since the last round that counted it */
	int64_t wall_us; /* when it was applied */
	double round_us; /* a round's time, smoothed; 0: not known yet */
	struct loss_curve training;
	struct loss_curve heldout; /* as this worker measures it, or as the coordinator gives it */
	/* The coordinator's latest notice of why it is not counted; "": none since it was. */
	char notice[RV_ERRTEXT_BYTES];
};

/* The limits of its person, and what they say now (allowed.c). */
struct session_allowed {
	struct allow core;
	struct sensors *sensors; /* NULL: nothing depends on them */
	bool opened;             /* core.kept was read */
	uint64_t before_bytes;   /* of the line, by earlier sessions of this process */
	int64_t turn_us;         /* time of the next look */
	int64_t stored_us;       /* time of the last write, and what it said of the day */
	uint64_t stored_bytes;
	bool told_unstored;
};

/* Things that outlive a session, as a rollback ends one and begins the next. */
struct session_local {
	struct local_server *server;   /* NULL: not open yet, or it cannot be */
	struct worker_options options; /* as they are now; session.opt */
	const char *log_file;          /* as it was at the start: the sandbox opens no other */
	int64_t threads;               /* with which the backend was made; 0: one for each processor */
	struct session_allowed allowed;
	int64_t paused_us; /* since when it is paused; 0: it is not, or keeps its memory */
	bool rests;        /* no session of a member begins before the pause is over */
	bool on_gpu;       /* the last session trained on one */
};

/* The part of the trace that describes the work under way. */
struct session_trace {
	struct rv_json_lines *file; /* NULL: it has ended */
	struct trace_roster roster; /* of the attempt that the all-reduce runs, or ran last */
	bool has_vote;              /* of that attempt */
};

/* A person asked to stop, by a signal or a command. */
struct session_signals {
	int fd;
	bool asked;
	int64_t asked_us;
};

/* The addresses of the last report. */
struct reported_candidates {
	struct candidate list[NET_MAX_CANDIDATES];
	uint8_t n;
	int64_t look_us; /* time of the next look at what they are now */
};

/* How others reach this worker (reach_test.c). */
struct session_reachability {
	struct reach_check check;    /* the latest, which may run */
	struct probe_answer *answer; /* listens before the join; NULL: the mesh does, or nobody */
	struct reflection reflection;
	bool reflects;                  /* `reflection` was opened */
	struct reach_test_reply relays; /* before the join: those of the run */
	int next_relay;                 /* of them, to be asked for a reflection */
	struct relay_names *names;      /* their addresses; NULL: not before a join */
	bool concludes;                 /* `check` has not been concluded from */
	bool logged;                    /* a conclusion was */
	uint8_t kind;                   /* enum reach_kind: the last one that is known */
	bool refuted;                   /* nobody gets through to the port that the router says it maps */
	int64_t again_us;               /* member: time of the next check */
	int64_t pause_us;               /* after the next one that finds nothing out */
	struct prober *prober;          /* probes for the coordinator; NULL: not a member yet */
};

/* Audits (audit.c, score.c, repeat.c); NULL: the run has none. */
struct session_audit {
	struct auditor *auditor;
	struct donor *donor; /* gives what is kept */
	struct kept_source source;
	struct kept_contributions *kept;
	struct kept_sums *sums;        /* NULL: the run's averages are not audited */
	struct kept_states *states;    /* NULL: the run's audits repeat nothing */
	struct session_repeat *repeat; /* what is repeated now; NULL: nothing */
	/* Text that this worker's own contributions have read, by round mod AUDITOR_ROUNDS. */
	struct {
		uint64_t round;
		bool any;
		struct reading text;
	} read[AUDITOR_ROUNDS];
	bool dropped;             /* nobody wants what is scored, or repeated, now */
	struct score_order order; /* that is scored, or repeated, now */
	struct score_job *job;    /* NULL: none is */
	bool asked;               /* the trainer has it */
	int64_t again_us, until_us;
	struct reading trains; /* what the trainer reads: it is fetched before what is scored */
	int turn;              /* the order in a document with which showing sums begins, */
	int64_t sums_us;       /* and not before when */
	bool appeals;          /* it is struck, and two others may think better */
};

/* The relay that this worker runs for others. */
struct session_own_relay {
	struct own_relay *relay;                  /* NULL: none */
	struct portmap *portmap, *second_portmap; /* of its two ports; NULL: the router is not asked */
	uint64_t closed_bytes;                    /* that relays forwarded which are closed now */
	bool listed;                              /* by the latest document */
	bool told_unlisted;
	int64_t opened_us, figures_us; /* time of its start; of the last event with figures */
};

struct session {
	const struct worker_options *opt;
	struct session_signals signals;
	char listen[128];        /* address of the mesh: --listen, or the one chosen */
	struct portmap *portmap; /* NULL: the router is not asked */
	uint16_t mapped_port;    /* for which it is asked */
	struct reported_candidates reported;
	struct sleep_watch sleep;
	int addresses_fd; /* -1: this system does not report changes */
	int lock_fd;
	int64_t started_us;
	bool joined_now;                  /* this process joined */
	char waits_for[RV_ERRTEXT_BYTES]; /* as last logged: what the join waits for; "": nothing */
	int64_t waits_told_us;            /* when that was */
	bool owes_end;                    /* no earlier process has written the end of the run into metrics */
	bool restarts;                    /* ends to begin anew: with other settings, or after a pause */
	struct peers_traffic charged;     /* bytes beside the mesh that its caps were charged for */
	bool is_away;                     /* the coordinator does not answer */
	bool over;                        /* a fault or a person ended the session before there was a core */
	enum rv_err fault;
	struct rv_errtext fault_text;

	struct rv_events *events;
	struct rv_json_lines *metrics;
	struct membership member;
	struct http_client *http;
	struct control_client *control;
	struct statestore store;
	struct trainer *trainer;
	struct text *text;                /* the run's text, which is fetched; NULL: a person brought it */
	struct sequence_order order;      /* of `text` */
	uint64_t heldout[TEXT_FILES_MAX]; /* (n_heldout) the shards of `text` that an evaluation reads */
	int n_heldout;                    /* 0: too many to be fetched ahead */
	int64_t text_stall_then;          /* its stall at the last apply */
	struct jobs *storage;
	struct store_thread store_thread; /* the storage thread's */
	struct mean_residual mean_residual;
	struct allreduce *reduce;
	int64_t evidence_us; /* not before this is evidence shown again */
	int n_proofs;
	int two_roots_shown;                   /* how often it has shown that a participant signed two contributions */
	struct rv_hash proofs[NET_MAX_PROOFS]; /* roots that name those of documents that were checked, the latest first */
	struct {
		uint64_t term, round;
		struct rv_hash of;  /* zeros: none yet */
		uint64_t unmade;    /* the last round that was named for having none, from 1 on; 0: none */
	} promise;              /* by the last document that had one: of the secret that draws the audits of `round` */
	struct rate donate_cap; /* of both donors */
	struct donor *donor;
	struct text_donor *text_donor;             /* NULL: the run has no text of its own */
	struct text_donor_store *text_donor_store; /* what it gives of; NULL: this worker holds none of it */
	struct session_audit audit;
	struct session_weigh *weigh; /* weigh.h; NULL: the run has no audits */
	struct fetcher *fetcher;
	struct meshlink *mesh;
	struct reach *reach;
	struct session_reachability reachability;
	struct session_own_relay own_relay;
	void *round_memory;
	struct session_core *core; /* NULL: not a member yet, or under construction */

	struct line_meter line;
	struct receipts receipts;
	uint32_t done_attempt; /* of the all-reduce under way: the latest that was seen done */
	struct session_trace trace;
	struct session_sums sums;
	struct session_history history;
	struct run_about about; /* what the operator says of the run */
	struct session_local *local;
	int64_t publish_us;               /* time of the next status */
	struct member_set logged_limited; /* members whose spent donation budget was logged */
	struct memory_plan memory;
	char data_path[1024];
	struct data_content content; /* hash of the text; "" before it is open */
	struct rv_hash own_text;     /* of a text that is not the run's; zero: none, or not open yet */
};

/* Saves and ends, as a person asked. */
void session_stop(struct session *s, int64_t now_us);
/* Does so after the round under way, at `by_us` at the latest (session_core_finish). */
void session_finish_round(struct session *s, int64_t now_us, int64_t by_us);
/* Ends the session with this fault. */
void session_fail(struct session *s, enum rv_err e, const char *text);
static inline bool session_is_up(const struct session *s) {
	return s->core != NULL;
}
static inline const struct round_core *session_round(const struct session *s) {
	return session_core_round(s->core);
}

/* ---- join.c ---- */

/* Checks all inputs, then asks the coordinator until it answers. */
enum rv_err session_open(struct session *s, const char *link, struct rv_errtext *et);

/* Asks to join, which spends the invite. */
void session_send_join(struct session *s);

/* ---- serving_key.c: which key serves the run ---- */

/* Returns what this worker shows to relays: serial 0 if the root key serves the run itself. */
struct serving_cert session_shown_cert(const struct session *s);
/* Asks for a ticket if the one that this worker has is not of the key that serves the run. */
void session_check_ticket(struct session *s);
/* Takes over what the coordinator's connection has shown: called in each turn. */
void session_follow_serving_key(struct session *s);
/* Hands a new ticket to the mesh and the stations, if they are there. */
void session_take_ticket(struct session *s);

/* ---- start.c ---- */

/* Starts a member: data, recovery, mesh, session core. */
enum rv_err session_bring_up(struct session *s, struct rv_errtext *et);
void session_release(struct session *s);

/* ---- repeat.c ---- */

/* Returns for how many rounds an inner state is kept: those that are audited, and one
 * before. */
uint32_t session_repeat_rounds(const struct run_config *run);
/* Returns the request with what keeps the inner state, in a run whose audits repeat. */
struct trainer_request session_kept_encode(const struct session *s, const struct trainer_request *rq);
/* Takes the end of such an encoding: says if the state could not be kept. */
void session_on_kept(struct session *s, const struct trainer_answer *a);
/* Operations of auditor_ops. */
size_t session_inner_bytes(void *session, const struct score_order *o);
uint32_t session_draw(void *session, uint32_t below);
void session_repeat(void *session, const struct score_order *o, const struct auditor_repeat *what);
void session_on_repeated(struct session *s, const struct trainer_answer *a);
/* Makes no further step of the one under way, which nobody wants. */
void session_drop_repeat(struct session *s);
void session_turn_repeat(struct session *s, int64_t now_us);
int64_t session_repeat_deadline_us(const struct session *s);
/* Returns what the trainer reads for it, borrowed; NULL: nothing is repeated. */
const struct reading *session_repeat_text(const struct session *s);
void session_close_repeat(struct session *s);

/* ---- network.c ---- */
void session_watch_addresses(struct session *s);
void session_unwatch_addresses(struct session *s);
/* Polls and dials again if an address of this machine came or went. */
void session_poll_addresses(struct session *s, int64_t now_us);
/* Makes all connections anew after this machine slept or the program was stopped. */
void session_poll_sleep(struct session *s, int64_t now_us);
/* Dials again, because the coordinator is reached again after an outage. */
void session_coordinator_back(struct session *s);
/* Limits which addresses of a document may be dialed, by the coordinator's own; asks the router for
 * a port where that can help. */
void session_limit_reach(struct session *s);
/* Asks the router to forward a port to `port` of this machine, where that can help. */
void session_map_port(struct session *s, uint16_t port);
/* Sets s->listen: --listen, or the usual port or the next free one. RV_E_BUSY: no such port is
 * free; RV_E_INVALID, RV_E_IO. */
enum rv_err session_choose_listen(struct session *s, struct rv_errtext *et);
/* Returns the port at which others reach this worker: that of the router's mapping, or the one that
 * it listens on. */
uint16_t session_outside_port(struct session *s);

/* ---- candidates.c ---- */

/* Adds to a report the addresses at which others may dial this worker. */
void session_report_candidates(struct session *s, struct report *r);
/* Reports at once if they have changed; looks once a second. */
void session_watch_candidates(struct session *s, int64_t now_us);

/* ---- reach.c ---- */

/* Makes stations and reflections; the mesh is open. */
enum rv_err session_open_reach(struct session *s, struct rv_errtext *et);
void session_on_unreached(void *ctx, uint32_t member, enum peers_need need); /* meshlink_config's */
void session_on_route_end(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed);
void session_on_pairs(void *ctx, const struct pair_reply *reply); /* control_client_owner's */
/* Adds what relays have proven to the n candidates. Returns their number. */
uint8_t session_reflected(const struct session *s, struct candidate out[NET_MAX_CANDIDATES], uint8_t n);

/* ---- reach_test.c ---- */
enum { SESSION_REACH_FDS = PROBE_ANSWER_FDS + REFLECTION_PORTS + PROBE_MAX_FDS };
/* Listens and begins to test how others reach this worker; session_send_join follows when it is
 * known, or 15 s later. Returns false if it cannot listen. */
bool session_test_reach(struct session *s, int64_t now_us);
/* Has it tested again: the network is another one. */
void session_retest_reach(struct session *s, int64_t now_us);
enum rv_err session_open_prober(struct session *s, struct rv_errtext *et);
/* control_client_owner's */
void session_on_probes(void *ctx, const struct probes *p);
void session_on_reach(void *ctx, const struct reach_test_reply *reply, bool final, const char *why);
int session_reach_pollfds(struct session *s, struct pollfd fds[SESSION_REACH_FDS]);
int64_t session_reach_deadline_us(struct session *s, int64_t now_us);
void session_reach_handle(struct session *s, int64_t now_us, const struct pollfd *fds, int n);
void session_release_reach(struct session *s);

/* ---- own_relay.c ---- */

/* Starts the relay if --relay-for-others asks for it. A port that cannot be had is logged, and is
 * no fault. */
enum rv_err session_open_own_relay(struct session *s, struct rv_errtext *et);
void session_close_own_relay(struct session *s); /* harmless if there is none */
/* Returns the port at which others reach it; 0: it runs none. */
uint16_t session_offered_relay(struct session *s);
/* Takes bans from a document, and logs whether it lists the relay. */
void session_own_relay_follow(struct session *s, const struct document *d);
void session_own_relay_tick(struct session *s, int64_t now_us);

/* ---- score.c ---- */

/* Notes what this worker has read for the contribution of the attempt that begins. */
void session_note_read(struct session *s, const struct document *d);
/* auditor_ops.sent_bytes and score. */
size_t session_score_bytes(void *session, const struct score_order *o);
void session_score(void *session, const struct score_order *o, uint8_t *encoded);
void session_on_scored(struct session *s, const struct trainer_answer *a);
void session_turn_score(struct session *s, int64_t now_us);
int64_t session_score_deadline_us(const struct session *s);
/* Adds what is to be scored to the shards that are wanted; returns their number, at most `most`. */
int session_score_shards(const struct session *s, uint64_t *shards, int n, int most);
void session_close_score(struct session *s); /* after the trainer */

/* ---- evidence.c ---- */

/* Shows what this worker got, while documents ask for it, or two seals of one owner are here. */
void session_turn_evidence(struct session *s, int64_t now_us);
/* Checks the proofs of a document that are new, and logs them. */
void session_check_proofs(struct session *s, const struct document *d);
/* Checks that the audits of a round were drawn with the secret that documents promised while the
 * round was open, and logs it if they were not. */
void session_check_promise(struct session *s, const struct document *d);

/* ---- audit.c ---- */

/* Opens what the run's audits need; nothing, if it has none. RV_E_NOMEM. */
enum rv_err session_open_audit(struct session *s, uint64_t run_tag, struct rv_errtext *et);
/* Operations of auditor_ops and gather_ops; `session` is the session. */
size_t session_chunk_bytes(void *session, uint64_t round, uint8_t codec, uint32_t chunk);
bool session_own_piece(void *session, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes);
bool session_is_linked(void *session, uint32_t member);
void session_close_audit(struct session *s);
void session_audit_roster(struct session *s, const struct document *d); /* an attempt begins */
void session_audit_follow(struct session *s, int64_t now_us, const struct document *d);
void session_report_audits(const struct session *s, struct report *r);
void session_turn_audit(struct session *s, int64_t now_us);
int64_t session_audit_deadline_us(struct session *s, int64_t now_us);
/* Stores what was sent to a round, on the storage thread; NULL: nothing is kept. Logs a fault. */
void session_keep_contribution(struct session *s, const struct state_log_info *log, const struct blob *sent);
/* The same of the sums of which this worker was the final owner. */
void session_keep_sums(struct session *s, const struct state_log_info *log, const struct blob *image);

/* ---- weigh.c ---- */

/* Returns for how many rounds an hour a member is given all contributions, to weigh another. */
int64_t session_weigh_rounds(const struct run_config *run);
/* Opens it where contributions are kept. patience_us: of the auditor. RV_E_NOMEM. */
enum rv_err session_open_weigh(struct session *s, uint64_t run_tag, int64_t patience_us, struct rv_errtext *et);
struct gather *session_gather(const struct session *s); /* NULL: it was not opened */
/* Begins to weigh a member, by the last `rounds` (0: all that members keep). RV_E_UNSUPPORTED,
 * RV_E_NOTFOUND, RV_E_RANGE, RV_E_NOMEM; RV_E_BUSY: later. */
enum rv_err session_weigh_member(struct session *s, uint32_t member, uint64_t rounds, uint64_t ticket,
								 struct rv_errtext *et);
/* Ends the weighing of that ticket (0: whichever is under way). RV_E_NOTFOUND: there is none. */
enum rv_err session_weigh_stop(struct session *s, uint64_t ticket, struct rv_errtext *et);
bool session_weighs(const struct session *s); /* a weighing is under way */
void session_weigh_roster(struct session *s, const struct document *d);
void session_on_slice(void *session, const struct trainer_slice *slice); /* trainer_owner's */
void session_turn_weigh(struct session *s, int64_t now_us);
int64_t session_weigh_deadline_us(const struct session *s);
/* Returns the latest weighing, for the status; NULL: there was none, or no memory. */
struct json_t *session_weigh_json(const struct session *s);
void session_stop_weigh(struct session *s);  /* its thread: before the trainer's end */
void session_close_weigh(struct session *s); /* after it */

/* ---- preflight.c ---- */

/* Computes how the run averages, without a model. Returns what model_extent_of and global_config_of
 * return. */
enum rv_err session_global_of(const struct run_config *run, struct model_extent *extent, struct global_config *out,
							  struct rv_errtext *et);
/* Returns the bytes of a snapshot, the round's result, and this worker's own state beside the one
 * that it replaces. */
uint64_t session_least_disk_bytes(const struct global_config *g);
/* Checks --shard. RV_E_RANGE: the run has no data shard of that number. */
enum rv_err session_check_shard(const struct session *s, const struct run_config *run, struct rv_errtext *et);
/* Checks the caps. RV_E_RANGE: under one of them the others would suspect this worker. */
enum rv_err session_check_caps(const struct session *s, const struct run_config *run, const struct global_config *g,
							   struct rv_errtext *et);
/* Checks everything that the run's configuration demands, before the join. RV_E_FULL: the
 * disk; RV_E_IO; the faults of the functions above, of session_check_memory and of
 * input_check_run_data. */
enum rv_err session_preflight(struct session *s, const struct run_config *run, struct rv_errtext *et);

/* ---- settings_check.c ---- */
/* Checks, of a member, that the run can live with its settings, whatever is free now. The faults of
 * session_check_kept (session.h). */
enum rv_err session_check_settings(const struct session *s, struct rv_errtext *et);

/* ---- disk_plan.c ---- */
struct session_disk_plan {
	uint64_t keep_snapshots;   /* 0: all */
	uint64_t text_bytes;       /* most of the run's text that is kept; 0: none is fetched */
	uint64_t text_least_bytes; /* of these, what the text needs; 0: the coordinator does not state it */
};
/* Returns what is kept for auditors: contributions, inner states, and one more of each while it is
 * written. */
uint64_t session_audit_disk_bytes(const struct run_config *run, const struct global_config *g);
/* Returns how much of that is not in the directory yet. */
uint64_t session_audit_disk_missing(const char *dir, const struct run_config *run, const struct global_config *g);
/* Divides what --max-disk allows. RV_E_FULL: it is too little for the run, or --data-cache is for
 * what the coordinator states of its text. */
enum rv_err session_plan_disk(const struct session *s, const struct run_config *run, const struct global_config *g,
							  struct session_disk_plan *out, struct rv_errtext *et);
/* Refuses less room for the run's text than `least_bytes`. RV_E_FULL. */
enum rv_err session_check_text_room(const struct session *s, uint64_t room_bytes, uint64_t least_bytes,
									struct rv_errtext *et);

/* ---- traffic.c ---- */
/* Bytes on the line since the session began, headers of TCP/IP included. */
struct session_line_bytes {
	uint64_t up, down, both;
};
struct session_line_bytes session_line_bytes(const struct session *s);
/* Charges the caps on the line for what went past the mesh. */
void session_charge_caps(struct session *s);

/* ---- allowed.c ---- */
/* Reads what earlier processes left, and starts to look at the computer. The directory is
 * locked. */
void session_open_allowed(struct session *s);
/* Takes changed options over. */
void session_allowed_changed(struct session *s);
/* Decides, at least every 250 ms, and pauses the session or lets it go on. */
void session_turn_allowed(struct session *s, int64_t now_us);
/* Pauses for `seconds` (ALLOW_FOREVER: until the next call), or with 0 ends such a pause, at once
 * and durably. Another reason may go on pausing it. */
void session_wish(struct session *s, int64_t seconds);
/* Counts what is left to count and lets all threads go. Before session_release. */
void session_close_allowed(struct session *s);
/* Returns the part of the status; NULL: no memory. */
struct json_t *session_allowed_json(const struct session *s);

/* ---- adjust.c ---- */
/* Sets options, a JSON object of texts, keeps them, and writes to `text` when they are in force.
 * RV_E_INVALID, RV_E_RANGE; RV_E_NOMEM, RV_E_FULL: the run needs more; nothing has changed then. */
enum rv_err session_set_options(struct session *s, const struct json_t *options, char *text, size_t cap,
								struct rv_errtext *et);

/* ---- inputs.c ---- */

/* Takes text and tokenizer from the options, before the join, downloads the text, and checks
 * both. */
enum rv_err session_check_inputs(struct session *s, struct rv_errtext *et);
/* Makes tokens of a person's text for a run with a tokenizer, and checks that they are enough for
 * it; they are kept for the start. Blocks for as long as that takes; a signal ends it. The faults
 * of run_tokenizer_open and dataset_open. */
enum rv_err session_check_tokens(struct session *s, const struct run_config *run, struct rv_errtext *et);
struct session_inputs {
	struct dataset *data;
	float *initial_theta; /* NULL: no --init */
};
/* Opens the inputs of a member. After a fault `in` still needs session_release_inputs. */
enum rv_err session_open_inputs(struct session *s, struct session_inputs *in, struct rv_errtext *et);
void session_release_inputs(struct session_inputs *in);
/* Checks --init. RV_E_INVALID: the run does not start from given weights. */
enum rv_err session_check_init(const struct session *s, const struct run_config *run, struct rv_errtext *et);

/* ---- text.c ---- */

/* Starts to fetch the text of a run that hands it out, and sets s->data_path to the directory where
 * it comes. RV_E_NOTFOUND: it comes from nowhere; what text_open returns. */
enum rv_err session_open_text(struct session *s, struct rv_errtext *et);
/* States which shards are wanted: those that the trainer reads, and those of an audit. */
void session_want_shards(struct session *s);
/* States which shards are wanted after those, by the member that evaluates, which is known from the
 * first roster on: those of an evaluation. */
void session_want_heldout(struct session *s);
/* States all of these, where a request trains. */
void session_want_text(struct session *s, const struct trainer_request *rq);
/* Logs what there is to say of the fetching. */
void session_log_text(struct session *s);
/* Adds what was fetched and waited for to a round's line. */
void session_count_text(struct session *s, struct metrics_round *r);
/* Enters the same, and a text that is not the run's, into a report. */
void session_report_text(struct session *s, struct report *r);
void session_close_text(struct session *s); /* after the trainer's end; harmless if there is none */

/* Returns the bytes a second that mirrors may send: half of the cap, as rounds need the line, too;
 * 0: no cap. */
int64_t session_text_most(const struct worker_options *o);

/* ---- text_donor.c ---- */

/* Makes what gives the run's text to other members, where the run has one. */
enum rv_err session_open_text_donor(struct session *s, uint64_t run_tag, struct rv_errtext *et);
/* Lets fetching ask other members: the mesh is open. */
void session_meet_members(struct session *s, uint64_t run_tag);
void session_turn_text_donor(struct session *s, int64_t now_us);
uint64_t session_text_given(const struct session *s); /* bytes so far, frames included */
int64_t session_text_donor_deadline_us(struct session *s, int64_t now_us);
void session_close_text_donor(struct session *s); /* after the mesh; harmless if there is none */

/* ---- own_text.c ---- */

/* Returns true if this worker reads the run's text, fetched or from a copy. */
bool session_has_runs_text(const struct session *s, const struct run_config *run);

/* Refuses a text that a person brings, where the run has another and allows no other:
 * RV_E_INVALID. */
enum rv_err session_check_own_text(const struct session *s, const struct run_config *run, struct rv_errtext *et);
/* Logs a text that is not the run's and sets s->own_text. Called once it is open. */
void session_note_own_text(struct session *s);

/* ---- limits.c ---- */

/* Applies the options that limit processors and GPUs, from now on. Any number of times. */
void session_apply_limits(const struct session *s);

/* ---- memory.c ---- */
/* Sets c->savings by the options, and by the memory that is free now where they leave it open. */
void session_choose_savings(const struct session *s, struct trainer_config *c);
/* Does the same for another room. */
void session_choose_savings_within(const struct session *s, const struct device_choice *device,
								   const struct memory_room *room, struct trainer_config *c);
/* Checks the memory plan (memory_check) by option short-of-memory. */
enum rv_err session_check_memory(const struct session *s, const struct trainer_config *c, struct rv_errtext *et);
/* Makes the plan. The faults of memory_plan_make. */
enum rv_err session_memory_of(const struct trainer_config *c, const struct device_choice *device,
							  struct memory_plan *out, struct rv_errtext *et);
/* Checks it against a room. The faults of memory_fit. */
enum rv_err session_memory_fits(const struct trainer_config *c, const struct device_choice *device,
								const struct memory_room *room, struct rv_errtext *et);
enum rv_err session_plan_memory(struct session *s, const struct trainer_config *c, struct rv_errtext *et);

/* ---- the core's tables ---- */
extern const struct session_trainer_ops session_trainer_ops; /* trainer.c */
extern const struct trainer_owner session_trainer_owner;     /* ctx to be filled in */
extern const struct session_disk_ops session_disk_ops;       /* disk.c */
extern const struct session_links_ops session_links_ops;     /* links.c */
extern const struct fetcher_owner session_fetcher_owner;     /* ctx to be filled in */
extern const struct session_control_ops session_control_ops; /* control.c */
struct session_reduce session_see(struct session *s, int64_t now_us);
/* Checks a manifest against the run's init_hash (fetcher_config.check_initial). */
enum rv_err session_check_initial(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);
/* control_client_owner's */
void session_on_document(void *ctx, const struct document *d);
void session_on_older(void *ctx, const struct document *d, uint64_t seen);

/* ---- events.c ---- */
void session_log_event(struct session *s, const struct session_event *e);
/* Logs the end of a run, or for a stopped worker what is saved and how to go on. */
void session_log_end(struct session *s);
void session_log_given_up(struct session *s, const struct statestore_given_up *g);
/* Logs, once, members that fetch more than a member needs. */
void session_note_donations(struct session *s);

/* ---- notice.c ---- */
void session_on_notice(void *ctx, const struct notice *n); /* control_client_owner.on_notice */

/* ---- trace_lines.c ---- */
void session_trace_open(struct session *s);
/* Writes `line` (worker/session/trace.h) and takes its reference; a fault ends the trace. */
void session_trace(struct session *s, struct json_t *line);
void session_trace_start(struct session *s, uint64_t boot, const struct recovered *found,
						 struct trainer_resumed resumed);
/* The all-reduce runs the attempt from now on. */
void session_trace_attempt(struct session *s, const struct document *d);
void session_trace_vote(struct session *s); /* its result is about to be stored */
/* Ends the trace: later work cannot be replayed from it. */
void session_trace_end(struct session *s, const char *why);
void session_trace_applied(struct session *s, uint64_t round, bool copy);

/* ---- consent.c ---- */
enum { SESSION_COMPUTES_BYTES = 96 };
/* Writes what this worker trains on: "the processor (2 cores)". */
void session_computes(const struct session *s, char out[SESSION_COMPUTES_BYTES]);
/* Shows what the run is, needs and does, and asks whether to join, unless that was agreed to
 * already; blocks until it is answered. `config`: as the coordinator sent it. RV_E_AUTH: the answer
 * is no, or there is neither a terminal nor --yes; the faults of terms_write. */
enum rv_err session_ask_consent(struct session *s, const struct run_config *run, const char *config,
								struct rv_errtext *et);

/* ---- rest.c ---- */
/* Ends the session if it has been paused for long; s->local->rests then, until it may go on. */
void session_turn_rest(struct session *s, int64_t now_us);

/* ---- history.c ---- */
/* Reads from metrics what earlier processes gave, and the curves; once. */
void session_load_history(struct session *s);
/* Notes that `round` was applied; `loss`: of this worker's training, may be NaN. */
void session_note_round(struct session *s, uint64_t round, double loss);
/* Notes why the coordinator does not count this worker; NULL: it counts again. */
void session_note_not_counted(struct session *s, const char *why);
/* Records a held-out loss that this worker measured, and reports it at once. */
void session_note_measured(struct session *s, uint64_t round, double loss);
/* control_client_owner's: takes the run's held-out losses if they are newer than those here. */
void session_on_heldout(void *ctx, const char *text);
/* Asks the coordinator for them once in each round, or once in a pause without a session, if this
 * worker has a page. */
void session_ask_heldout(struct session *s, int64_t now_us);

/* ---- local.c ---- */
/* Starts to serve the page and commands, if that is wanted and not so already; a fault is logged,
 * and the worker goes on without. The directory is locked. */
void session_open_local(struct session *s);
void session_close_local(struct session_local *l);
/* Carries out commands that wait and publishes the status, when it is due. */
void session_serve_local(struct session *s, int64_t now_us);
/* Returns the descriptor that is readable while a command waits; -1: none. */
int session_local_fd(const struct session *s);
int64_t session_local_deadline_us(const struct session *s);

/* ---- samples.c ---- */
/* Tells the server whether the model may be tried now, and returns it for the status. The session
 * is up. */
struct json_t *session_plan_samples(struct session *s);

/* ---- status.c ---- */
/* Makes the status (docs/files.md). NULL: no memory. */
struct json_t *session_status(struct session *s, int64_t now_us);

/* ---- progress.c ---- */
void session_show_progress(struct session *s, int64_t now_us);

/* ---- metrics.c ---- */
/* Returns the time in inner steps since the process started, including the one under way. */
int64_t session_compute_us(struct session *s, int64_t now_us);
void session_write_run(struct session *s);
void session_write_round(struct session *s, uint64_t round);
void session_write_eval(struct session *s, uint64_t round, bool last, double loss);
/* Returns the rounds between two evaluations; 0: none. */
int64_t session_eval_every(const struct session *s);
void session_write_end(struct session *s, const struct rv_hash *state);
/* Begins a term with `round` in metrics. */
void session_write_rollback(struct session *s, uint64_t round, uint64_t term);
/* Returns, from metrics, the tokens of all workers when `round` rounds were completed. */
uint64_t session_tokens_at(struct session *s, uint64_t round);
uint64_t session_bytes_sent(const struct session *s);
/* Returns the bytes of state sent to workers that lacked it, since this worker's first start. */
uint64_t session_bytes_donated(const struct session *s);
void session_count_roster(struct session *s, const struct document *d);

#endif
