/* apply.h: what the trainer is asked to do in an outer step. */
#ifndef RV_WORKER_TRAINER_APPLY_H
#define RV_WORKER_TRAINER_APPLY_H

#include "base/hash.h"
#include "worker/state/blob.h"

/* What becomes of theta_local in an outer step. */
enum trainer_adopt {
	TRAINER_ADOPT,  /* our gradient is in the mean: adopt_round() (train/adopt.h) */
	TRAINER_KEEP,   /* it is not: inner progress stays, moved by theta's movement */
	TRAINER_DISCARD /* it is not: theta_local is theta, all of it */
};

/* The outer step with these bytes (referenced until done). */
struct trainer_apply {
	uint64_t round;
	struct blob *reduced; /* the round's reduced bytes */
	struct rv_hash digest;
	enum trainer_adopt adopt;
	bool want_snapshot, want_replica; /* what the copy for the disk should hold */
};

#endif
