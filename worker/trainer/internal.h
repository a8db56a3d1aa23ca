/* internal.h: shared by trainer.c (requests and answers, on the event loop's thread) and work.c
 * (the work itself, on the trainer thread). */
#ifndef RV_WORKER_TRAINER_INTERNAL_H
#define RV_WORKER_TRAINER_INTERNAL_H

#include "base/jobs.h"
#include "train/device_set.h"
#include "train/participant/participant.h"
#include "worker/trainer/copier.h"
#include "worker/trainer/live.h"
#include "worker/trainer/trainer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* The roots over the inner state: as it was when the steps under way began, if they can be repeated
 * from it, and at the last encoding. Else zero. */
struct inner_roots {
	struct rv_hash begin, end;
};

/* One request: made by the event loop, worked on by the trainer thread, answered by the event
 * loop. */
struct request {
	struct job job;
	struct trainer *t; /* NULL: free */
	struct trainer_request asked;
	struct trainer_answer answer;
};

struct trainer {
	struct run_config run;
	struct trainer_owner owner;
	struct jobs *jobs;
	struct device_set devices;
	enum dtype compute; /* of their products */
	struct dataset *data;
	struct replica *replica;
	struct participant participant; /* used by the trainer thread only, except its encoded vector */
	struct committer committer;     /* likewise, except its tree */
	struct inner_roots inner;       /* likewise */
	struct global_state global;
	struct request requests[TRAINER_MAX_REQUESTS]; /* the event loop's */
	struct copier *copier;
	struct live_state live;
	int reads_again;
	bool streams;   /* savings.stream: copies of the state read it where it lies */
	bool gave_back; /* the replica, its devices and what goes with them are freed */
	/* The last copies: their memory is reused once no other reference is left. */
	struct blob *spare_replica, *spare_snapshot;

	pthread_mutex_t lock;
	struct trainer_progress progress; /* under lock */
	atomic_bool training;             /* a TRAIN is under way */
	atomic_bool stop;                 /* TRAIN: at the next step boundary */
	atomic_bool ending;               /* EVALUATE, SCORE: at the next batch, for good */
	atomic_bool abandons;             /* a step: at once, for good */
	atomic_llong rests_by_us;         /* END: when the last copy from a device must be made; 0: no limit */
	atomic_bool scoring;              /* a SCORE or a REPEAT is under way */
	atomic_bool slicing;              /* a slice is under way: it waits for no text */
	atomic_int behind;                /* requests that have not begun */

	struct job slice_job; /* does the slice where no steps are done */
	bool slice_posted;    /* the event loop's: slice_job is under way */
	_Atomic(struct trainer_slice *) offered, sliced;
};

void trainer_work(struct request *rq);
/* Does the slice that is offered, if there is one; between steps. */
void trainer_do_slice(struct trainer *t);
void trainer_slice_alone(struct job *j); /* slice_job.run */
/* Copies the participant's counts to t->progress; a new round's sums begin. `begins`: a new
 * contribution begins too. */
void trainer_show_round(struct trainer *t, bool begins);
/* Adds the time since then to `sum` of t->progress. */
void trainer_count_time(struct trainer *t, int64_t *sum, int64_t since_us);

/* ---- copies.c: on the trainer thread ---- */

/* Puts the state as it is now into the answer. */
void trainer_take_copy(struct request *rq, bool snapshot, bool replica);
/* Wait until the replica, or the shared state, is no longer being copied or read and may be
 * changed. `trainer`: a struct trainer. */
void trainer_settle(void *trainer);
void trainer_settle_shared(struct trainer *t);
/* Returns true if a copy needs neither other memory than the worker keeps for it nor the disk. */
bool trainer_may_save_at_rest(const struct trainer *t);

#endif
