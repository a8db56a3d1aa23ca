/* lab_run.h: a whole training run in one process: k replicas and what joins them.
 *
 * It drives the very code of the distributed run (replica, codec, merge_chunk, global_apply), in the same order;
 * so, with the same configuration, backend and threads per replica, it ends in the same bits. A *method* says how the
 * replicas are joined: one file and one line of methods.def each; real workers do diloco, the others are for
 * comparison. How many run at a time (`parallel`) never changes a result.
 */
#ifndef RV_LAB_LAB_RUN_H
#define RV_LAB_LAB_RUN_H

#include "base/hash.h"
#include "base/run_config.h"
#include "lab/run/codec_loss.h"
#include "outer/global.h"
#include "train/participant/participant.h"
#include "train/text/data.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { LAB_MAX_WORKERS = 64, LAB_MAX_EXTRA = 8 + 6 * LAB_MAX_WORKERS };

struct lab_run;

/* What one round did, for metrics. */
struct lab_round {
	uint64_t tokens;     /* of all workers */
	double train_loss;   /* mean over steps and workers */
	float lr, grad_norm; /* of the last step (diloco: of worker 0) */
	uint64_t bytes;      /* by formula, one worker */
	int participants;
	int64_t compute_us, reduce_us; /* mean over the workers, also where one replica computes for all; the joining */
	int64_t modelled_us;           /* until the round closed, by the model of lab/methods/pace.h; 0: no such model */
	/* Of the workers' outer gradients, before encoding; 0 where there are none, or only one. */
	double delta_norm;                /* mean L2 norm */
	double delta_cosine;              /* mean over pairs */
	double codec_error, codec_cosine; /* what encoding did to them (codec_loss.h): means over the workers */
};

/* Options that a method has no use for, whatever their values, and what they belong to. */
struct method_idle {
	const char *const *names; /* NULL-terminated */
	const char *belongs;
};

enum { METHOD_MAX_IDLE = 3 };

struct lab_config;
struct lab_method {
	const char *name;
	bool
		averages; /* through r->global: has a shared theta; with `codec` NULL outer gradients, by codec and optimizer */
	/* What reports say of encoding and outer step where those are the method's own; NULL: they are the
	 * configuration's. */
	const char *codec, *outer;
	/* synchronous.h's round: fragments, overlap, workers that miss a round or are slow, merging are possible. */
	bool synchronous;
	const struct method_idle *idle[METHOD_MAX_IDLE]; /* the first that names an option counts; NULL: no more */
	/* What the method prescribes of the configuration; NULL: nothing. */
	void (*configure)(struct lab_config *c);
	/* What of the configuration it cannot be run with, before configure; NULL: nothing. The text says what to do. */
	enum rv_err (*check)(const struct run_config *c, int workers, struct rv_errtext *et);
	int (*n_replicas)(int workers);
	/* Vectors of n floats that the method keeps in lab_run.extra, part of a checkpoint; zero before start. NULL:
	 * none. */
	int (*n_extra)(int workers, int n_states);
	/* Memory of the method's own behind r->own, of no checkpoint. RV_E_NOMEM; close is called in any case. NULL:
	 * none. */
	enum rv_err (*open)(struct lab_run *r, struct rv_errtext *et);
	void (*close)(struct lab_run *r);
	void (*start)(struct lab_run *r); /* a new run; NULL: nothing to do */
	/* From wherever the replicas are to the end of the round: RV_E_CANCELLED when lab_run_stop was called, with a state
	 * that can be saved and continued. */
	enum rv_err (*round)(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);
	const float *(*theta)(struct lab_run *r); /* the weights that are the run's result */
	struct rv_hash (*state_hash)(struct lab_run *r);
	uint64_t (*payload_bytes)(const struct lab_run *r);
};

struct lab_config {
	struct run_config run;
	const struct lab_method *method;
	struct rv_hash run_hash; /* the chain of hashes starts from it: a real run's, to compare with it */
	int workers;             /* 1..LAB_MAX_WORKERS */
	const uint32_t *members; /* (workers) numbers in the run, which say what each reads; NULL: 0, 1, ... */
	int threads;             /* per replica */
	int parallel;            /* replicas that run at a time */
	enum recompute recompute;
	const float
		*initial_theta; /* (n) where run.init_hash says so, borrowed until lab_run_new is done; NULL: from the seed */
	struct device_choice device; /* of each replica */
	const struct device_choice
		*devices; /* (replicas) where they differ, borrowed until lab_run_new is done; NULL: `device` for all */
	const char *isa;
	const enum dtype
		*compute;     /* (replicas) of their products, borrowed until lab_run_new is done; NULL: as run.dtype */
	double drop_sync; /* probability that a worker misses a round's averaging; 0: none does */
	/* How fast workers are, by model (lab/methods/pace.h): relative, 0 is 1; whether H follows from it; an inner step at speed
	 * 1. */
	double speeds[LAB_MAX_WORKERS];
	bool dylu;
	double step_ms;
	uint64_t eval_tokens; /* that every evaluation predicts, as replica_eval; 0: all held-out text */
	bool eval_replicas;   /* fill in lab_run.average_loss and .replica_loss at the end */
};

/* Sums over the steps of the round under way: part of a checkpoint. */
struct lab_worker_sums {
	double loss;
	uint64_t steps, tokens;
	int64_t compute_us;
};

/* Open to the methods and the checkpoint; others use the functions below. */
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
	/* Of methods that average: */
	struct global_state global;
	struct participant participants[LAB_MAX_WORKERS]; /* of methods that average outer gradients */
	struct codec_loss codec_losses[LAB_MAX_WORKERS];  /* of the round */
	uint8_t *reduced;
	uint64_t goals[LAB_MAX_WORKERS]; /* inner steps that the training under way goes to */
	float *extra[LAB_MAX_EXTRA];     /* (n) each: the method's */
	int n_extra;
	void *own; /* the method's */
	uint64_t rounds_done, tokens_done, bytes_sent;
	atomic_uint_fast64_t steps_done; /* of all replicas, whole run: for progress */
	atomic_bool stop;
	/* Held-out, just before the last outer step, after which it cannot be measured any more: of the mean of the
	 * replicas' weights, and of replica 0's; 0: not looked at, or no such thing (ddp). Part of a checkpoint. */
	double average_loss, replica_loss;
	/* How long the run has taken, over all processes: set by who saves it, for who goes on. */
	int64_t wall_us;
	void (*tick)(void *ctx); /* as parallel_loop.tick, while replicas train */
	void *tick_ctx;
};

/* Borrows `data`. RV_E_NOMEM and what replica_new, backend_open and global_init refuse. */
enum rv_err lab_run_new(const struct lab_config *cfg, const struct dataset *data, struct lab_run **out,
						struct rv_errtext *et);
void lab_run_free(struct lab_run *r); /* NULL is fine */

/* The next round. RV_E_RANGE: training diverged: a number is not finite. */
enum rv_err lab_run_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);
/* After that: the worker whose number it is; -1: no single one's (their mean, or data-parallel training). */
int lab_run_diverged_worker(const struct lab_run *r);
/* Ends the round under way at the next step of each replica. Any thread. */
void lab_run_stop(struct lab_run *r);
bool lab_run_finished(const struct lab_run *r);
uint64_t lab_run_steps(const struct lab_run *r); /* inner steps of each worker, in whole rounds */
/* Measures the held-out loss of the result so far, over cfg.eval_tokens. What replica_eval refuses. */
enum rv_err lab_run_eval(struct lab_run *r, double *loss, struct rv_errtext *et);

/* Worker i's number in the run. */
uint32_t lab_run_member(const struct lab_run *r, int i);
/* For methods: takes replica i to inner step `goal` of the run, one call of `step` for each. */
typedef enum rv_err lab_step_fn(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et);
void lab_run_inner_steps(struct lab_run *r, int i, uint64_t goal, lab_step_fn *step);
/* The steps that worker i's contribution had when the round began: of rounds that it missed, and whose progress it has
 * kept. */
uint64_t lab_run_kept_steps(const struct lab_run *r, int i);
/* For methods: calls fn(r, i) for each replica, cfg.parallel at a time. Returns the fault of the first that has one. */
enum rv_err lab_run_for_all(struct lab_run *r, void (*fn)(void *ctx, int i), struct rv_errtext *et);
/* For methods: the fault of the first replica that has one. */
enum rv_err lab_run_first_fault(const struct lab_run *r, struct rv_errtext *et);

#define LAB_CHECKPOINT_FILE "checkpoint.rvc" /* in the run's directory */

/* The whole state of the run, at any moment between rounds or after RV_E_CANCELLED. Loading refuses (RV_E_PROTOCOL) the
 * checkpoint of another configuration, RV_E_CORRUPT what is damaged; the run is then unusable until another is loaded,
 * but can be freed. */
enum rv_err lab_run_save(struct lab_run *r, const char *path, struct rv_errtext *et);
enum rv_err lab_run_load(struct lab_run *r, const char *path, struct rv_errtext *et);

#endif
