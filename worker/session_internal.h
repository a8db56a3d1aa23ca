/* session_internal.h: what one run of the worker consists of. Shared by session*.c only:
 * session.c (loop, stopping), session_join.c (until it is a member), session_preflight.c (what a run asks of this
 * machine), session_start.c (building), session_inputs.c (text, tokenizer, initial weights), session_round.c (the round
 * core's actions and what answers them), session_network.c (what the network tells), session_storage.c (jobs of the
 * storage thread), session_report.c (reports, events, metrics), session_notice.c (what the coordinator says of this
 * worker). */
#ifndef RV_WORKER_SESSION_INTERNAL_H
#define RV_WORKER_SESSION_INTERNAL_H

#include "base/clock.h"
#include "base/event.h"
#include "worker/control_client.h"
#include "worker/jobs.h"
#include "worker/line_meter.h"
#include "worker/membership.h"
#include "worker/meshlink.h"
#include "worker/round.h"
#include "worker/session.h"
#include "worker/statestore.h"
#include "worker/trace.h"
#include "worker/train/data.h"
#include "worker/train/memory_report.h"
#include "worker/train/metrics.h"
#include "worker/trainer.h"

#include <stdatomic.h>

enum { SESSION_PATH_BYTES = 320 };
enum { SESSION_LINGER_US = 5 * RV_US_PER_S }; /* a finished worker stays so long for peers that lack its log */

enum { SESSION_STORE_KINDS = 8 };

enum session_state {
	SESSION_JOINING,
	SESSION_RUNNING,
	SESSION_EXPORTING, /* the run is done: last evaluation, weights */
	SESSION_LINGERING, /* done; peers may still need our log */
	SESSION_STOPPING,  /* saving and saying good-bye */
	SESSION_ENDED
};

/* For metrics; sums since the start of the run. */
struct session_sums {
	uint64_t tokens; /* of all workers */
	uint64_t bytes_sent_before, formula_bytes, bytes_donated_before;
	int64_t reduce_us, overlap_us; /* since the process started; of it, inner steps went on */
	int64_t applied_us, compute_then, reduce_then, overlap_then, snapshot_then; /* at the last apply */
	int64_t reduce_started_us, reduce_compute_us; /* 0: not under way; and the compute by then */
	struct reduce_info exchanged;                 /* of the latest all-reduce we took part in; zero once it was told */
	uint32_t attempts;                            /* that it took */
	uint32_t participants;                        /* of the latest roster */
	uint64_t weights, own_weight;                 /* of that: their sum; 0: we are not in it */
	uint64_t own_tokens;                          /* of our latest contribution */
	uint64_t given_rounds, given_tokens; /* contributions of this process to committed rounds, and their tokens */
	uint64_t round_tokens;         /* of all contributions to the latest round that we took part in; 0: none yet */
	bool first_participant;        /* we are its first: the one that evaluates */
	uint64_t roster_set, done_set; /* members: of the latest roster; seen at the end of the run */
	double eval_loss;              /* after eval_round, the last; NaN: not measured */
	uint64_t eval_round;
};

struct session {
	const struct worker_options *opt;
	int signals_fd;
	int addresses_fd; /* -1: this system does not tell */
	int lock_fd;
	enum session_state state;
	bool saved;        /* STOPPING: the replica's state is with the storage thread, or needs no saving */
	bool exported;     /* the weights are written */
	bool preflighted;  /* the run's configuration was looked at before the join */
	bool joined_now;   /* this process made it a member */
	bool owes_end;     /* no former process has written the end of the run into metrics */
	bool told_to_stop; /* by a signal, at signalled_us */
	int64_t signalled_us;
	int64_t started_us, stop_by_us, linger_until_us;
	uint64_t boot;      /* this process, in reports */
	bool replica_ahead; /* its file is of a round that was taken back: it must prove nothing any more */
	uint64_t next_epoch, next_epoch_round; /* ends to start again there: the run was rolled back; 0: not */
	enum rv_err fault;                     /* why it ends; RV_OK: as it should */
	struct rv_errtext fault_text;

	struct rv_events *events;
	struct metrics *metrics;
	struct membership member;
	struct http_client *http;
	struct control_client *control;
	struct statestore store;
	struct trainer *trainer;
	struct jobs *storage;
	struct allreduce *reduce;
	struct donor *donor;
	struct fetcher *fetcher;
	struct meshlink *mesh;
	struct round_core *round;

	atomic_bool other_history_on_disk; /* it could not be removed */
	struct blob *reduced;              /* the reduced bytes that APPLY will need */
	uint32_t reduced_attempt;          /* whose they are, a vote; 0: fetched */
	uint32_t told_attempt;             /* the attempt whose completion the round core was told of; 0: none */
	uint64_t told_suspects;
	bool told_old_store; /* and no document was followed since */
	struct line_meter line;
	bool persisting, persist_again;              /* one PERSIST at a time with the storage thread */
	bool replica_write;                          /* a snapshot is with the storage thread */
	uint32_t writes_failed[SESSION_STORE_KINDS]; /* since the last that did not, of a kind of storage job */
	bool disk_full[SESSION_STORE_KINDS];         /* that is why the last one failed */
	bool fetched_in_memory;                      /* the disk did not take what was fetched last */
	uint32_t history;           /* states installed so far: what was under way before one is of another history */
	bool lacks_state;           /* the run starts from weights that this worker has not yet */
	bool told_lacking;          /* and that nobody is there who has them */
	bool told_starving;         /* that the run moves faster than we catch up */
	uint32_t missing_workers;   /* the run waits for so many, as people were told; 0: it does not */
	int spoiled;                /* contributions in a row that were of no use */
	bool participated;          /* in the round that is being applied */
	uint32_t applied_attempt;   /* whose result that is; 0: fetched */
	bool kept;                  /* and inner progress is kept over it */
	struct trace *trace;        /* NULL: it has ended */
	struct trace_roster roster; /* of the attempt that the all-reduce runs, or ran last */
	bool traced_vote;           /* the trace has it */
	uint64_t traced_steps;      /* of the contribution under way */
	uint64_t traced_ahead;      /* steps of the round after it */
	struct session_sums sums;
	uint64_t donor_bytes_seen;
	uint64_t told_limited; /* members: that their budget of donations is used up */
	struct memory_plan memory;
	char data_path[1024];
	struct data_content content; /* of the text; "" before it is open */
};

/* Ends the session with this fault. */
void session_fail(struct session *s, enum rv_err e, const char *text);
/* The same, but what there is is saved first, and the others are told that nobody need wait. */
void session_give_up(struct session *s, int64_t now_us, enum rv_err e, const char *text);
bool session_is_up(const struct session *s); /* the round core exists */
/* Stops, to start again with what the disk holds of the rounds that were not taken back. */
void session_roll_back(struct session *s, int64_t now_us, const struct round_action *a);

/* ---- session_join.c ---- */

/* Looks at all that can be looked at, and asks the coordinator, until it answers. */
enum rv_err session_open(struct session *s, const char *link, struct rv_errtext *et);

/* ---- session_start.c ---- */

/* Once a member: data, recovery, mesh, round core. */
enum rv_err session_bring_up(struct session *s, struct rv_errtext *et);
void session_release(struct session *s);

/* ---- session_network.c ---- */
void session_watch_addresses(struct session *s);
void session_unwatch_addresses(struct session *s);
/* Asks and dials anew if an address of this machine came or went. */
void session_poll_addresses(struct session *s, int64_t now_us);
/* Dials anew: the coordinator is reached again, so the line was away. */
void session_coordinator_back(struct session *s);
/* Before the addresses of a document are dialed. */
void session_limit_reach(struct session *s);

/* ---- session_preflight.c ---- */

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

/* ---- session_inputs.c ---- */

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

/* ---- session_memory.c ---- */
/* Sets c->recompute as --recompute says; for auto by the memory that is free now. */
void session_choose_recompute(const struct session *s, struct trainer_config *c);
/* As option short-of-memory says: memory_check. */
enum rv_err session_check_memory(const struct session *s, const struct trainer_config *c, struct rv_errtext *et);
enum rv_err session_plan_memory(struct session *s, const struct trainer_config *c, struct rv_errtext *et);

/* ---- session_round.c ---- */
void session_on_document(void *ctx, const struct document *d);
void session_on_older(void *ctx, const struct document *d, uint64_t seen); /* control_client_owner.on_older */
void session_actions(struct session *s, int64_t now_us);
/* The full hash of the state that we hold, or held, at `round`. */
void session_full_hash(struct session *s, uint64_t round, const struct rv_hash *hash);
/* Tells the round core what the all-reduce has come to. */
void session_poll_reduce(struct session *s, int64_t now_us);
/* Tells it what nobody has, and people when it does not get in. */
void session_poll_fetch(struct session *s, int64_t now_us);
extern const struct trainer_owner session_trainer_owner; /* ctx to be filled in */
extern const struct fetcher_owner session_fetcher_owner; /* ctx to be filled in */
/* fetcher_config.check_initial: what the run's init_hash says. */
enum rv_err session_check_initial(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);

/* ---- session_notice.c ---- */
void session_on_notice(void *ctx, const struct notice *n); /* control_client_owner.on_notice */

/* ---- session_storage.c ---- */
void session_persist(struct session *s);
/* What APPLY will need, referenced: the result of that attempt, a vote, or fetched (0). */
void session_keep_reduced(struct session *s, struct blob *reduced, uint32_t attempt);
/* What becomes of base-R.part. */
void session_installed(struct session *s, uint64_t round, bool ok);
/* Taken over; NULL: there was no memory for it, which is told. */
void session_save_snapshot(struct session *s, struct trainer_snapshot *snapshot);
/* Weights and the last line of metrics, then LINGERING. */
void session_export(struct session *s);
/* The latest attempt to store something of some kind failed: not all that there is is on disk. */
bool session_storage_fails(const struct session *s);
/* report.storage: what the round core says of results of rounds, and what else is not stored. */
uint8_t session_storage_report(const struct session *s, uint8_t rounds);
/* Whether the disk takes as much as a round's result: round_on_storage. */
void session_probe_storage(struct session *s);

/* ---- session_trace.c ---- */
void session_trace_open(struct session *s);
void session_trace_start(struct session *s, const struct recovered *found, struct trainer_resumed resumed);
void session_trace_attempt(struct session *s, const struct document *d); /* the all-reduce runs it from now on */
void session_trace_vote(struct session *s);                              /* its result is about to be stored */
void session_trace_trained(struct session *s, uint64_t round, uint64_t steps_done);
/* What is done from here on cannot be done again from it. */
void session_trace_end(struct session *s, const char *why);
void session_trace_encoded(struct session *s, uint64_t round, bool ok, bool snapshot);
/* participated, kept, applied_attempt: of it. */
void session_trace_applied(struct session *s, uint64_t round, bool snapshot);
void session_trace_installed(struct session *s, uint64_t round);
void session_trace_rollback(struct session *s, uint64_t round);
void session_trace_saved(struct session *s, const struct trainer_snapshot *snapshot);

/* ---- session_report.c ---- */
/* Spent in inner steps since the process started, the one under way included. */
int64_t session_compute_us(struct session *s, int64_t now_us);
void session_send_report(struct session *s, int64_t now_us);
void session_show_progress(struct session *s, int64_t now_us);
void session_write_run(struct session *s);
void session_write_round(struct session *s, uint64_t round);
void session_write_eval(struct session *s, uint64_t round, bool last, double loss);
/* Returns the rounds between two evaluations; 0: none. */
int64_t session_eval_every(const struct session *s);
void session_write_end(struct session *s, const struct rv_hash *state);
/* The last words of a run that is done. */
void session_tell_done(struct session *s);
/* Begins an epoch with `round` in metrics. */
void session_write_rollback(struct session *s, uint64_t round, uint64_t epoch);
/* What metrics say of the tokens of all workers when `round` rounds were completed. */
uint64_t session_tokens_at(struct session *s, uint64_t round);
uint64_t session_bytes_sent(const struct session *s);
/* Of the run's state, to workers that lacked it, since this worker's first start. */
uint64_t session_bytes_donated(const struct session *s);
/* Reads what former processes gave, from metrics. */
void session_load_donated(struct session *s);
/* Names members that fetch more than a member needs, once. */
void session_note_donations(struct session *s);
void session_note_document(struct session *s, const struct document *d);
/* Says that the run stands still for want of workers, when how many changes; and that it goes on. */
void session_note_missing(struct session *s);

/* The replica's file is that of a round's encoding, not of its outer step: steps ahead or a residual depend on it. */
static inline bool session_saves_encodings(const struct run_config *run) {
	return run_config_overlap(run) > 0 || run->error_feedback > 0;
}

#endif
