/* lab_run.h: a whole training run in one process: k replicas and the method that joins them.
 *
 * It drives the code of the distributed run (replica, codec, merge_chunk, global_apply), in the
 * same order; so, with the same configuration, backend and threads per replica, it ends in the same
 * bits. A *method* joins the replicas: one file and one line of methods.def each; real workers do
 * diloco, the others are for comparison. The number that run at a time (`parallel`) never changes a
 * result. */
#ifndef RV_LAB_LAB_RUN_H
#define RV_LAB_LAB_RUN_H

#include "base/hash.h"
#include "base/run_config.h"
#include "base/slow_lines.h"
#include "lab/run/codec_loss.h"
#include "lab/run/lab_leases.h"
#include "outer/global.h"
#include "outer/mean_residual.h"
#include "train/participant/participant.h"
#include "train/text/data.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { LAB_MAX_WORKERS = 64, LAB_MAX_EXTRA = 8 + 6 * LAB_MAX_WORKERS };

struct lab_run;

/* Figures of one round, for metrics. */
struct lab_round {
	uint64_t tokens;     /* of all workers */
	double train_loss;   /* mean over steps and workers */
	float lr, grad_norm; /* of the last step (diloco: of worker 0) */
	uint64_t bytes;      /* of one worker, by formula */
	int participants;
	int64_t compute_us, reduce_us; /* mean over the workers, also where one replica computes for all; the joining */
	int64_t modelled_us;           /* until the round closed, by the model of lab/methods/pace.h; 0: no such model */
	int64_t modelled_exchange_us;  /* by the model of lab/methods/lines.h; 0: no such model */
	/* Figures of the workers' outer gradients, before encoding; 0 if there are none, or only
	 * one. */
	double delta_norm;                /* mean L2 norm */
	double delta_cosine;              /* mean over pairs */
	double codec_error, codec_cosine; /* loss of encoding (codec_loss.h): means over the workers */
};

/* Options without an effect in a method, whatever their values, and the settings they belong to. */
struct method_idle {
	const char *const *names; /* NULL-terminated */
	const char *belongs;
};

enum { METHOD_MAX_IDLE = 3 };

struct lab_config;
struct lab_method {
	const char *name;
	bool averages; /* through r->global; with `codec` NULL outer gradients, by codec and optimizer */
	/* Reports' texts for codec and outer step if those are the method's own; NULL: the
	 * configuration's. */
	const char *codec, *outer;
	/* Whether rounds are those of synchronous.h: fragments, overlap, missed rounds, slow workers
	 * and merging are possible. */
	bool synchronous;
	const struct method_idle *idle[METHOD_MAX_IDLE]; /* the first that names an option counts; NULL: no more */
	/* Options that the method prescribes (lab/methods/preset.h). */
	bool prescribes_outer;
	enum outer_choice prescribed_outer;
	enum run_updates updates; /* UPDATES_WAITED: the configuration's */
	bool alone;               /* of one worker */
	bool no_prox;             /* workers never leave the shared weights, to which prox-mu pulls */
	/* Sets further options that the method prescribes; NULL: none. */
	void (*configure)(struct lab_config *c);
	/* Refuses further configurations that the method cannot run, before configure, with the remedy;
	 * NULL: none. */
	enum rv_err (*check)(const struct run_config *c, int workers, struct rv_errtext *et);
	int (*n_replicas)(int workers);
	/* Returns how many vectors of n floats the method keeps in lab_run.extra, part of a checkpoint;
	 * zero before start. NULL: none. */
	int (*n_extra)(int workers, int n_states);
	/* Allocates memory of the method's own behind r->own, not part of a checkpoint. RV_E_NOMEM;
	 * close is called in any case. NULL: none. */
	enum rv_err (*open)(struct lab_run *r, struct rv_errtext *et);
	void (*close)(struct lab_run *r);
	void (*start)(struct lab_run *r); /* a new run; NULL: nothing to do */
	/* Takes the replicas from any point to the end of the round. RV_E_CANCELLED if lab_run_stop was
	 * called, with a state that can be saved and continued. */
	enum rv_err (*round)(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);
	const float *(*theta)(struct lab_run *r); /* the weights that are the run's result */
	struct rv_hash (*state_hash)(struct lab_run *r);
	uint64_t (*payload_bytes)(const struct lab_run *r);
};

/* An attack: contents that some workers send in place of their outer gradients
 * (lab/methods/attack.h). */
enum lab_attack_kind { LAB_ATTACK_NONE, LAB_ATTACK_SCALE, LAB_ATTACK_NOISE };
struct lab_attack {
	enum lab_attack_kind kind;
	double value;
	int workers; /* the last ones */
};

struct lab_config {
	struct run_config run;
	const struct lab_method *method;
	struct rv_hash run_hash; /* start of the chain of hashes: a real run's, for comparison */
	int workers;             /* 1..LAB_MAX_WORKERS */
	const uint32_t *members; /* (workers) numbers in the run, which decide what each reads; NULL: 0, 1, ... */
	int threads;             /* per replica */
	int parallel;            /* replicas that run at a time */
	struct savings savings;
	const float *initial_theta;          /* (n) with run.init_hash, borrowed by lab_run_new; NULL: from the seed */
	struct device_choice device;         /* of each replica */
	const struct device_choice *devices; /* (replicas) if they differ, borrowed by lab_run_new; NULL: all `device` */
	const char *isa;
	const struct savings *savings_of; /* (replicas) if they differ, borrowed by lab_run_new; NULL: all `savings` */
	const enum dtype *compute;        /* (replicas) of products, borrowed by lab_run_new; NULL: run.dtype */
	double drop_sync;                 /* probability that a worker misses a round's averaging; 0: none does */
	/* Probability that a chunk's owner is another one than in the last round, so that the residual
	 * of its mean is lost (outer/mean_residual.h). */
	double move_owners;
	struct lab_attack attack;
	/* Modelled speeds of workers (lab/methods/pace.h): relative, 0 is 1; whether H follows from
	 * them; time of an inner step at speed 1. */
	double speeds[LAB_MAX_WORKERS];
	bool dylu;
	double step_ms;
	struct slow_line lines[LAB_MAX_WORKERS]; /* modelled (lab/methods/lines.h); 0: no model */
	uint64_t eval_tokens;                    /* tokens of every evaluation, as replica_eval; 0: all held-out text */
	bool eval_replicas;                      /* fill in lab_run.average_loss and .replica_loss at the end */
};

/* Sums over the steps of the current round: part of a checkpoint. */
struct lab_worker_sums {
	double loss;
	uint64_t steps, tokens;
	int64_t compute_us;
};

/* A run; only the methods and the checkpoint access its fields, others use the functions below. */
struct lab_run {
	struct lab_config cfg;
	const struct dataset *data; /* borrowed */
	int n_replicas;
	struct device_set devices[LAB_MAX_WORKERS];
	struct replica *replicas[LAB_MAX_WORKERS];
	struct lab_worker_sums sums[LAB_MAX_WORKERS];
	struct step_stats last[LAB_MAX_WORKERS];
	enum rv_err faults[LAB_MAX_WORKERS];
	struct rv_errtext fault_texts[LAB_MAX_WORKERS];
	/* Only for methods that average: */
	struct global_state global;
	struct participant participants[LAB_MAX_WORKERS]; /* of methods that average outer gradients */
	struct mean_residual mean_residual;               /* of all owners */
	struct codec_loss codec_losses[LAB_MAX_WORKERS];  /* of the round */
	uint64_t sent_bytes; /* of a contribution to the round that was reduced last, on average */
	uint8_t *reduced;
	struct lab_leases leases;
	uint64_t goals[LAB_MAX_WORKERS]; /* inner step at which the current training ends */
	float *extra[LAB_MAX_EXTRA];     /* (n) each: the method's */
	int n_extra;
	void *own; /* the method's */
	uint64_t rounds_done, tokens_done, bytes_sent;
	atomic_uint_fast64_t steps_done; /* of all replicas, whole run: for progress */
	atomic_bool stop;
	/* Held-out losses just before the last outer step, of the mean of the replicas' weights and of
	 * replica 0's; 0: not measured, or no such thing (ddp). Part of a checkpoint. */
	double average_loss, replica_loss;
	/* The run's duration over all processes, in us: set before it is saved, read when it
	 * continues. */
	int64_t wall_us;
	void (*tick)(void *ctx); /* as parallel_loop.tick, while replicas train */
	void *tick_ctx;
};

/* Makes a run. Borrows `data`. RV_E_NOMEM and the faults of replica_new, backend_open and
 * global_init. */
enum rv_err lab_run_new(const struct lab_config *cfg, const struct dataset *data, struct lab_run **out,
						struct rv_errtext *et);
void lab_run_free(struct lab_run *r); /* NULL is fine */

/* Trains the next round. RV_E_RANGE: training diverged: a value is not finite. */
enum rv_err lab_run_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);
/* Returns, after that, the worker that diverged; -1: no single one (their mean, or data-parallel
 * training). */
int lab_run_diverged_worker(const struct lab_run *r);
/* Ends the current round at the next step of each replica. Any thread. */
void lab_run_stop(struct lab_run *r);
bool lab_run_finished(const struct lab_run *r);
uint64_t lab_run_steps(const struct lab_run *r); /* inner steps of each worker, in whole rounds */
/* Measures the held-out loss of the result so far, over cfg.eval_tokens. The faults of
 * replica_eval. */
enum rv_err lab_run_eval(struct lab_run *r, double *loss, struct rv_errtext *et);

/* Returns worker i's number in the run. */
uint32_t lab_run_member(const struct lab_run *r, int i);
/* Takes replica i to inner step `goal` of the run, one call of `step` for each, or as far as its
 * leases reach: those of a worker that missed rounds may end earlier. For methods. */
typedef enum rv_err lab_step_fn(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et);
void lab_run_inner_steps(struct lab_run *r, int i, uint64_t goal, lab_step_fn *step);
/* Returns the steps in worker i's contribution when the round began: of rounds that it missed and
 * whose progress it kept. */
uint64_t lab_run_kept_steps(const struct lab_run *r, int i);
/* Calls fn(r, i) for each replica, cfg.parallel at a time, and returns the fault of the first that
 * has one. For methods. */
enum rv_err lab_run_for_all(struct lab_run *r, void (*fn)(void *ctx, int i), struct rv_errtext *et);
/* Returns the fault of the first replica that has one. For methods. */
enum rv_err lab_run_first_fault(const struct lab_run *r, struct rv_errtext *et);

#define LAB_CHECKPOINT_FILE "checkpoint.rvc" /* in the run's directory */

/* Save or load the whole state of the run, at any moment between rounds or after RV_E_CANCELLED.
 * Loading refuses the checkpoint of another configuration (RV_E_PROTOCOL) and a damaged one
 * (RV_E_CORRUPT); the run is then unusable until another is loaded, but can be freed. */
enum rv_err lab_run_save(struct lab_run *r, const char *path, struct rv_errtext *et);
enum rv_err lab_run_load(struct lab_run *r, const char *path, struct rv_errtext *et);

#endif
