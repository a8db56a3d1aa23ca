/* internal.h: the platform around the session core (worker/session/core.h), shared by session*.c only:
 * session.c (the loop, signals, the end), join.c (until it is a member), preflight.c (what a run asks
 * of this machine), start.c (building), inputs.c (text, tokenizer, initial weights), memory.c;
 * the core's tables: trainer.c, disk.c, links.c, control.c; events.c (what the
 * core says, in words), notice.c (what the coordinator says of this worker), metrics.c (metrics.jsonl),
 * progress.c (the line that people watch), trace_lines.c, network.c (what the network tells). */
#ifndef RV_WORKER_SESSION_INTERNAL_H
#define RV_WORKER_SESSION_INTERNAL_H

#include "base/clock.h"
#include "base/event.h"
#include "base/jobs.h"
#include "train/memory/report.h"
#include "train/metrics.h"
#include "train/text/data.h"
#include "worker/join/control_http.h"
#include "worker/join/membership.h"
#include "worker/mesh/line_meter.h"
#include "worker/mesh/meshlink.h"
#include "worker/session/core.h"
#include "worker/session/session.h"
#include "worker/session/trace.h"
#include "worker/state/statestore.h"
#include "worker/trainer/trainer.h"

enum { SESSION_PATH_BYTES = 320 };

/* For metrics; sums since the start of the run. */
struct session_sums {
	uint64_t tokens; /* of all workers */
	uint64_t bytes_sent_before, formula_bytes, bytes_donated_before;
	int64_t reduce_us, overlap_us; /* since the process started; of it, inner steps went on */
	int64_t applied_us, compute_then, reduce_then, overlap_then, copy_then; /* at the last apply */
	int64_t reduce_started_us, reduce_compute_us; /* 0: not under way; and the compute by then */
	struct reduce_info exchanged;                 /* of the latest all-reduce we took part in; zero once it was told */
	uint32_t attempts;                            /* that it took */
	uint32_t participants;                        /* of the latest roster */
	uint64_t weights, own_weight;                 /* of that: their sum; 0: we are not in it */
	uint64_t own_tokens;                          /* of our latest contribution */
	uint64_t given_rounds, given_tokens; /* contributions of this process to committed rounds, and their tokens */
	uint64_t round_tokens; /* of all contributions to the latest round that we took part in; 0: none yet */
	double eval_loss;      /* after eval_round, the last; NaN: not measured */
	uint64_t eval_round;
};

/* What the trace has of the work under way. */
struct session_trace {
	struct trace *file;         /* NULL: it has ended */
	struct trace_roster roster; /* of the attempt that the all-reduce runs, or ran last */
	bool has_vote;              /* of that attempt */
	uint64_t steps;             /* of the contribution under way */
	uint64_t ahead;             /* steps of the round after it */
};

/* A person asked to stop, by a signal. */
struct session_signals {
	int fd;
	bool told;
	int64_t told_us;
};

struct session {
	const struct worker_options *opt;
	struct session_signals signals;
	int addresses_fd; /* -1: this system does not tell */
	int lock_fd;
	int64_t started_us;
	bool preflighted, joined_now; /* the run's configuration was looked at before the join; this process joined */
	bool owes_end;                /* no former process has written the end of the run into metrics */
	bool over;                    /* a fault, or a person, ended it before there was a core */
	enum rv_err fault;
	struct rv_errtext fault_text;

	struct rv_events *events;
	struct metrics *metrics;
	struct membership member;
	struct http_client *http;
	struct control_client *control;
	struct statestore store;
	struct trainer *trainer;
	struct jobs *storage;
	struct store_thread store_thread; /* the storage thread's */
	struct allreduce *reduce;
	struct donor *donor;
	struct fetcher *fetcher;
	struct meshlink *mesh;
	void *round_memory;
	struct session_core *core; /* NULL: it is not a member, or being built */

	struct line_meter line;
	uint32_t done_attempt; /* of the all-reduce under way: the latest that was seen done */
	struct session_trace trace;
	struct session_sums sums;
	uint64_t told_limited; /* members: that their budget of donations is used up */
	struct memory_plan memory;
	char data_path[1024];
	struct data_content content; /* of the text; "" before it is open */
};

/* Ends the session with this fault. */
void session_fail(struct session *s, enum rv_err e, const char *text);
static inline bool session_is_up(const struct session *s) {
	return s->core != NULL;
}
static inline const struct round_core *session_round(const struct session *s) {
	return session_core_round(s->core);
}

/* ---- join.c ---- */

/* Looks at all that can be looked at, and asks the coordinator, until it answers. */
enum rv_err session_open(struct session *s, const char *link, struct rv_errtext *et);

/* ---- start.c ---- */

/* Once a member: data, recovery, mesh, session core. */
enum rv_err session_bring_up(struct session *s, struct rv_errtext *et);
void session_release(struct session *s);

/* ---- network.c ---- */
void session_watch_addresses(struct session *s);
void session_unwatch_addresses(struct session *s);
/* Asks and dials anew if an address of this machine came or went. */
void session_poll_addresses(struct session *s, int64_t now_us);
/* Dials anew: the coordinator is reached again, so the line was away. */
void session_coordinator_back(struct session *s);
/* Before the addresses of a document are dialed. */
void session_limit_reach(struct session *s);

/* ---- preflight.c ---- */

/* RV_E_RANGE: the run has no data shard of the number that --shard says. */
enum rv_err session_check_shard(const struct session *s, int64_t data_shards, struct rv_errtext *et);
/* RV_E_RANGE: under a cap the others would take this worker for dead. */
enum rv_err session_check_caps(const struct session *s, const struct run_config *run, const struct global_config *g,
							   struct rv_errtext *et);
/* RV_E_FULL: --dir has no room for the least that a member stores; RV_E_IO. */
enum rv_err session_check_disk(const struct session *s, const struct run_config *run, struct rv_errtext *et);
/* All that the configuration of a run says before the join. What the functions above, session_check_memory and
 * input_check_run_data refuse. */
enum rv_err session_preflight(struct session *s, const struct run_config *run, struct rv_errtext *et);

/* ---- inputs.c ---- */

/* Before the join: takes over what the options say of text and tokenizer, and looks at it. Downloads the text. */
enum rv_err session_check_inputs(struct session *s, struct rv_errtext *et);
struct session_inputs {
	struct dataset *data;
	float *initial_theta; /* NULL: no --init */
};
/* Once a member. Faults leave what is to be released. */
enum rv_err session_open_inputs(struct session *s, struct session_inputs *in, struct rv_errtext *et);
void session_release_inputs(struct session_inputs *in);
/* RV_E_INVALID: --init for a run that does not start from given weights. */
enum rv_err session_check_init(const struct session *s, const struct run_config *run, struct rv_errtext *et);
/* The directory of downloads and of tokens made of text. */
void session_data_cache(const struct session *s, char out[SESSION_PATH_BYTES]);

/* ---- memory.c ---- */
/* Sets c->recompute as --recompute says; for auto by the memory that is free now. */
void session_choose_recompute(const struct session *s, struct trainer_config *c);
/* As option short-of-memory says: memory_check. */
enum rv_err session_check_memory(const struct session *s, const struct trainer_config *c, struct rv_errtext *et);
enum rv_err session_plan_memory(struct session *s, const struct trainer_config *c, struct rv_errtext *et);

/* ---- the core's tables ---- */
extern const struct session_trainer_ops session_trainer_ops; /* trainer.c */
extern const struct trainer_owner session_trainer_owner;     /* ctx to be filled in */
extern const struct session_disk_ops session_disk_ops;       /* disk.c */
extern const struct session_links_ops session_links_ops;     /* links.c */
extern const struct fetcher_owner session_fetcher_owner;     /* ctx to be filled in */
extern const struct session_control_ops session_control_ops; /* control.c */
struct session_seen session_see(struct session *s, int64_t now_us);
/* fetcher_config.check_initial: what the run's init_hash says. */
enum rv_err session_check_initial(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);
/* control_client_owner's */
void session_on_document(void *ctx, const struct document *d);
void session_on_older(void *ctx, const struct document *d, uint64_t seen);

/* ---- events.c ---- */
void session_tell_event(struct session *s, const struct session_event *e);
/* The last words: of a run that is done; of one that was stopped: what was kept, and how to go on. */
void session_tell_end(struct session *s);
void session_tell_given_up(struct session *s, const struct statestore_given_up *g);
/* Names members that fetch more than a member needs, once. */
void session_note_donations(struct session *s);

/* ---- notice.c ---- */
void session_on_notice(void *ctx, const struct notice *n); /* control_client_owner.on_notice */

/* ---- trace_lines.c ---- */
void session_trace_open(struct session *s);
void session_trace_start(struct session *s, uint64_t boot, const struct recovered *found,
						 struct trainer_resumed resumed);
void session_trace_attempt(struct session *s, const struct document *d); /* the all-reduce runs it from now on */
void session_trace_vote(struct session *s);                              /* its result is about to be stored */
void session_trace_trained(struct session *s, uint64_t round, uint64_t steps_done);
/* What is done from here on cannot be done again from it. */
void session_trace_end(struct session *s, const char *why);
void session_trace_encoded(struct session *s, uint64_t round, bool ok, bool copy);
void session_trace_applied(struct session *s, uint64_t round, bool copy);
void session_trace_installed(struct session *s, uint64_t round);
void session_trace_rollback(struct session *s, uint64_t round);
void session_trace_saved(struct session *s, const struct trainer_copy *copy);

/* ---- progress.c ---- */
void session_show_progress(struct session *s, int64_t now_us);

/* ---- metrics.c ---- */
/* Spent in inner steps since the process started, the one under way included. */
int64_t session_compute_us(struct session *s, int64_t now_us);
void session_write_run(struct session *s);
void session_write_round(struct session *s, uint64_t round);
void session_write_eval(struct session *s, uint64_t round, bool last, double loss);
/* Returns the rounds between two evaluations; 0: none. */
int64_t session_eval_every(const struct session *s);
void session_write_end(struct session *s, const struct rv_hash *state);
/* Begins a term with `round` in metrics. */
void session_write_rollback(struct session *s, uint64_t round, uint64_t term);
/* What metrics say of the tokens of all workers when `round` rounds were completed. */
uint64_t session_tokens_at(struct session *s, uint64_t round);
uint64_t session_bytes_sent(const struct session *s);
/* Of the run's state, to workers that lacked it, since this worker's first start. */
uint64_t session_bytes_donated(const struct session *s);
/* Reads what former processes gave, from metrics. */
void session_load_donated(struct session *s);
void session_count_roster(struct session *s, const struct document *d);

#endif
