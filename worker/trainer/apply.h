/* apply.h: what the trainer is asked to do in an outer step. */
#ifndef RV_WORKER_TRAINER_APPLY_H
#define RV_WORKER_TRAINER_APPLY_H

#include "base/hash.h"
#include "train/participant/participant.h"
#include "worker/state/blob.h"

/* The outer step with these bytes (referenced until done). */
struct trainer_apply {
	uint64_t round;
	struct blob *reduced; /* the round's reduced bytes */
	struct rv_hash digest;
	enum participant_adopt adopt;
	bool want_snapshot, want_replica; /* what the copy for the disk should hold */
};

#endif
