/* replica_internal.h: the replica's struct, shared by replica.c (steps) and replica_state.c (save and load). */
#ifndef RV_WORKER_TRAIN_REPLICA_INTERNAL_H
#define RV_WORKER_TRAIN_REPLICA_INTERNAL_H

#include "worker/train/model.h"
#include "worker/train/replica.h"
#include "worker/train/schedule.h"

struct replica {
	struct run_config cfg;
	const struct dataset *data; /* borrowed */
	struct backend *be;         /* borrowed */
	uint32_t shard, n_shards;
	struct model *model;
	size_t n;
	float *theta, *grad, *m, *v; /* (n) each, backend memory */
	float *mirror;               /* (n) host copy of theta; NULL when the backend's memory is the host's */
	struct schedule schedule;
	const atomic_bool *stop;   /* borrowed; NULL: evaluations are not to be stopped */
	uint64_t global_step;      /* of the run: the learning rate follows it */
	uint64_t adam_steps;       /* updates that m and v have seen: the bias correction follows it */
	uint64_t cursor;           /* sequences of the shard's stream read so far */
	int32_t *inputs, *targets; /* (batch * context), host */
	float *losses;             /* (batch * context), host */
};

#endif
