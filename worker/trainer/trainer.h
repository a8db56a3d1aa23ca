/* trainer.h: the training side of a worker: backend, data, replica, the shared state, and the
 * thread that works on them.
 *
 * The event loop makes requests (one outstanding of a kind) and gets the answers through callbacks
 * from trainer_reap(), on its own thread. Requests run in order; a TRAIN under way stops at the
 * next step boundary when another request comes. While the trainer is idle the owner may read its
 * shared state and encoded vector. */
#ifndef RV_WORKER_TRAINER_TRAINER_H
#define RV_WORKER_TRAINER_TRAINER_H

#include "base/run_config.h"
#include "outer/global.h"
#include "train/replica.h"
#include "worker/state/statestore.h"
#include "worker/trainer/live.h"
#include "worker/trainer/request.h"

#include <pthread.h>
#include <stdbool.h>

struct trainer;
enum { TRAINER_MAX_REQUESTS = 17 }; /* one of each kind, and a few more evaluations and copies */

struct trainer_config {
	const struct run_config *run;
	struct rv_hash run_hash;
	struct dataset *data; /* of the run: taken over, whatever trainer_new returns */
	uint32_t shard;       /* of text that members bring; 0 in a run with data_hash */
	const char *device;   /* as device_choose (kernels/device.h) takes it */
	int threads;
	struct savings savings;
	const float *initial_theta; /* (n), copied; NULL: theta0 is drawn from the run's seed */
	int reads_again;            /* most times that an INSTALL reads a state again, a second apart; 0: 120 */
};

/* The handle of an answer's state_copy: the state at a round boundary, for the storage thread,
 * which frees it with trainer_copy_free, before the trainer. Copies are not complete when handed
 * over: call trainer_copy_wait before reading the bytes, on any thread. With savings.stream they
 * are the state itself: training waits, before it changes what is not read yet. */
struct trainer_copy {
	pthread_mutex_t lock;
	pthread_cond_t is_copied;
	bool copied;                  /* under lock */
	struct global_state snapshot; /* a view of snapshot_bytes, or of the shared state; without scratch */
	struct blob *snapshot_bytes;  /* NULL: none */
	struct state_replica_info replica;
	struct blob *replica_bytes; /* still to be sealed (replica_seal). NULL: none */
	struct state_whole whole;
	struct live_state *live; /* what is held of it; NULL: nothing */
	bool holds[LIVE_PARTS];
	struct replica_stream stream; /* holds[LIVE_REPLICA] */
	uint8_t *room;                /* of its pieces */
};
void trainer_copy_wait(struct trainer_copy *s);
/* Returns the replica's bytes, sealed; once. Streamed, they end early if the trainer gave its
 * memory back. */
struct state_pieces_of trainer_copy_replica(struct trainer_copy *s);
/* Notes that the rest of it is not read: training need not wait. */
void trainer_copy_read(struct trainer_copy *s);
void trainer_copy_free(struct trainer_copy *s); /* waits first; `s` may be NULL */

struct trainer_progress {
	uint64_t round; /* of the contribution */
	struct participant_progress done;
	int64_t contribution_us; /* time of these steps, in this process */
	uint64_t global_step;
	float loss, lr; /* of the last step; NaN: none yet */
	float grad_norm;
	double round_loss; /* sum over the steps since the last apply */
	uint64_t round_steps;
	double last_round_loss; /* mean over the steps between the last two applies; NaN: there were none */
	float tokens_per_s;
	int64_t compute_us;    /* since the process started; of steps, when they are done */
	int64_t step_since_us; /* rv_clock_monotonic_us() when the inner step under way began; 0: there is none */
	int64_t score_us;      /* since the process started: of auditing others' training, and of slices */
	int64_t copy_us;       /* of compute_us: while training waited for copies for the storage thread */
};

/* A part of an evaluation of other weights: a few sequences, between two inner steps. */
enum { TRAINER_SLICE_MOST = 8 };
struct trainer_slice {
	const float *theta;  /* (n), borrowed until it is done */
	uint64_t max_tokens; /* of the evaluation, as replica_eval takes it */
	uint64_t next;       /* number of its first sequence */
	/* Results: the faults of replica_heldout_losses (RV_E_CANCELLED also: text is missing);
	 * sequences of the whole evaluation, and of this part; the loss of each of those. */
	enum rv_err err;
	struct rv_errtext text;
	uint64_t all, n;
	double losses[TRAINER_SLICE_MOST];
};

struct trainer_owner {
	void *ctx;
	void (*wake)(void *ctx); /* from the trainer thread */
	void (*answered)(void *ctx, const struct trainer_answer *a);
	void (*sliced)(void *ctx, const struct trainer_slice *s); /* NULL: it offers none */
	/* From the trainer thread, once: an INSTALL cannot read its state, and goes on trying. */
	void (*reads_again)(void *ctx, uint64_t round, const char *why);
};

/* Opens the backend and builds theta0; blocks. RV_E_NOTFOUND, RV_E_RANGE, RV_E_NOMEM, ... */
enum rv_err trainer_new(const struct trainer_config *cfg, const struct trainer_owner *owner, struct trainer **out,
						struct rv_errtext *et);
/* Stops at the next step boundary and frees. `t` may be NULL. */
void trainer_free(struct trainer *t);

/* Returns the shared state, which recovery fills before the first request. */
struct global_state *trainer_global(struct trainer *t);
struct trainer_resumed {
	bool saved; /* the replica comes from the disk: Adam's moments, the data cursor */
	bool exact; /* and belongs to this very state: theta_local and the steps done too */
};
/* Goes on with the replica of `found`. Begins from the shared state if there is none, if it is
 * damaged (`notice` gets the reason), or if it is of a later round and the shared state of
 * round 0. */
struct trainer_resumed trainer_resume(struct trainer *t, const struct recovered *found,
									  void (*notice)(void *ctx, enum rv_err why, const char *text), void *ctx);

/* Takes memory for the first copies, unless they are streamed, and touches it: fresh pages cost
 * many times what copying does. Once, before the first request. Without it copies take theirs when
 * they need it. */
void trainer_reserve_copies(struct trainer *t);

/* Makes a request: takes over rq->snapshot, a struct state_file, and refers to rq->reduced. At most
 * TRAINER_MAX_REQUESTS are unanswered. */
void trainer_request(struct trainer *t, const struct trainer_request *rq);

/* Offers a part of an evaluation, borrowed until owner.sliced has it: done before the next inner
 * step, whose bits do not depend on it. One at a time. */
void trainer_offer(struct trainer *t, struct trainer_slice *s);

/* Reports whether the work under way should end soon: a reader of text need not wait longer. Its
 * RV_E_CANCELLED then ends a TRAIN before the step. Any thread. */
bool trainer_stops(struct trainer *t);

void trainer_reap(struct trainer *t);
/* Throws away the step under way, if its gradient is not complete: before TRAINER_END. */
void trainer_abandon(struct trainer *t);
/* Makes the TRAINER_END to come wait for no disk: its copy is made by then (rv_clock_monotonic_us),
 * in the memory that is kept for copies, or there is none. The rest of a state that is streamed is
 * lost. */
void trainer_hurry(struct trainer *t, int64_t by_us);
/* Frees the memory of the replica and of its devices, but not copies made of it: after TRAINER_END
 * is answered. Later requests are answered with RV_E_CANCELLED. Does nothing while the state is
 * streamed. Any number of times. */
void trainer_give_back(struct trainer *t);
bool trainer_idle(struct trainer *t);
struct trainer_progress trainer_progress(struct trainer *t); /* any thread */

const uint8_t *trainer_encoded(const struct trainer *t); /* the encoding of the last ENCODE */
/* Returns global_last_mean() of the state that was encoded, until the round is applied. */
const float *trainer_last_mean(const struct trainer *t);
const struct rv_hash *trainer_tree(const struct trainer *t); /* over its chunks (base/merkle.h) */
struct replica *trainer_replica(struct trainer *t);          /* only while idle */
const char *trainer_device(const struct trainer *t);
const struct device_choice *trainer_device_choice(const struct trainer *t);
/* Returns true if its inner state can be kept for auditors, and exchanged with another one. */
bool trainer_inner_is_there(const struct trainer *t);
enum dtype trainer_compute(const struct trainer *t); /* of its products */

#endif
