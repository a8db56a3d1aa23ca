/* internal.h: shared by trainer.c (requests and answers, on the event loop's thread) and work.c
 * (the work itself, on the trainer thread). */
#ifndef RV_WORKER_TRAINER_INTERNAL_H
#define RV_WORKER_TRAINER_INTERNAL_H

#include "base/jobs.h"
#include "train/device_set.h"
#include "train/participant/participant.h"
#include "worker/trainer/copier.h"
#include "worker/trainer/trainer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* One request: made by the event loop, worked on by the trainer thread, answered and freed by the
 * event loop. */
struct request {
	struct job job;
	struct trainer *t; /* NULL: a spare one, free */
	struct trainer_answer answer;
	uint64_t steps;              /* TRAIN */
	struct trainer_apply apply;  /* APPLY */
	bool want_replica;           /* ENCODE */
	struct state_file *snapshot; /* INSTALL */
	struct rv_hash expect;
	uint64_t max_tokens; /* EVALUATE */
};

/* Requests that may be under way if memory is short: one of each kind, one more evaluation and one
 * more save. */
enum { TRAINER_SPARE = 8 };

struct trainer {
	struct run_config run;
	struct trainer_owner owner;
	struct jobs *jobs;
	struct device_set devices;
	enum dtype compute; /* of their products */
	struct dataset *data;
	struct replica *replica;
	struct participant participant; /* used by the trainer thread only, except its encoded vector */
	struct global_state global;
	struct request spare[TRAINER_SPARE]; /* the event loop's: when there is no memory for a request */
	struct copier *copier;
	/* The last copies: their memory is reused once no other reference is left. */
	struct blob *spare_replica, *spare_snapshot;

	pthread_mutex_t lock;
	struct trainer_progress progress; /* under lock */
	atomic_bool stop;                 /* TRAIN: at the next step boundary */
	atomic_bool ending;               /* EVALUATE: at the next batch, for good */
};

void trainer_work(struct request *rq);
/* Copies the participant's counts to t->progress; a new round's sums begin. `begins`: a new
 * contribution begins too. */
void trainer_show_round(struct trainer *t, bool begins);
/* Waits until the state is no longer being copied and may be changed. `trainer`: a struct
 * trainer. */
void trainer_settle(void *trainer);

#endif
