/* store_job.h: a job of the storage thread, as a state machine without I/O: what it writes and
 * removes, in which order, and what a failure of one step means for the next. The storage thread
 * executes the steps (worker/session/disk.c), and so does the simulator, which may end the process
 * between any two of them.
 *
 * A job is posted by the session core (worker/session/core.h), belongs to the storage thread until
 * its last step is done, and returns as the answer. Jobs are executed in the order in which they
 * were posted. */
#ifndef RV_WORKER_STATE_STORE_JOB_H
#define RV_WORKER_STATE_STORE_JOB_H

#include "base/err.h"
#include "net/control/control.h"
#include "worker/state/blob.h"
#include "worker/state/checkpoint_index.h"
#include "worker/state/state_format.h"

enum store_kind {
	STORE_PERSIST,   /* the result of an all-reduce, as a log entry: before the vote */
	STORE_INSTALLED, /* a fetched snapshot is the state now: remove other histories, name the snapshot */
	STORE_REFUSED,   /* a fetched snapshot was unusable: remove its part */
	STORE_COPY,      /* copies of the replica and of the shared state; then retention */
	STORE_EXPORT,    /* the weights of the run's end */
	STORE_PROBE,     /* a test whether the disk has room for a log entry */
	STORE_LOST,      /* a log entry was fetched and could not be written: remove what is there of its round */
	STORE_KINDS
};

enum store_step {
	STORE_STEP_REMOVE_LOG, /* of the round store_thread.stale */
	STORE_STEP_MEANS,      /* what encoding the means left, before the entry that makes it count */
	STORE_STEP_LOG,
	STORE_STEP_FORGET, /* remove what checkpoint_goes_by_history() names for job->round */
	STORE_STEP_ADOPT,  /* rename snapshot-R.part. RV_E_NOTFOUND: there is none */
	STORE_STEP_REMOVE_PART,
	STORE_STEP_REMOVE_REPLICA,
	STORE_STEP_REPLICA,
	STORE_STEP_SNAPSHOT, /* fills full_hash, whatever it returns */
	STORE_STEP_HASH,     /* fills full_hash of the copy, and writes nothing */
	STORE_STEP_PRUNE,
	STORE_STEP_EXPORT, /* fills full_hash */
	STORE_STEP_PROBE,
	STORE_STEP_END
};

/* Copies of the state, made by the trainer for the disk. */
struct state_copy {
	void *handle; /* the platform's; NULL: there was no memory for any copy */
	bool has_snapshot, has_replica;
	uint64_t snapshot_round;
	enum rv_err err; /* RV_E_NOMEM: a requested part is missing */
	struct rv_errtext text;
};

struct store_job {
	enum store_kind kind;
	struct state_log_info log; /* PERSIST; its digest is part of the answer */
	struct blob *reduced;      /* PERSIST: the reduced bytes, one reference */
	struct blob *left;         /* PERSIST: mean_residual_save(), one reference; NULL: no error feedback of means */
	uint64_t round;            /* INSTALLED, REFUSED, LOST */
	uint64_t committed_from;   /* INSTALLED: the digests in the document, from this round on */
	int n_committed;
	struct rv_hash committed[NET_MAX_LOG_DIGESTS];
	struct state_copy copy;        /* COPY */
	struct checkpoint_named named; /* COPY: what joiners need */
	uint32_t history;              /* COPY: how many states had been installed when it was taken */
	bool replica_ahead;            /* COPY: the replica on disk must not stay */
	bool after_lost_forget;        /* an INSTALLED before it could not be posted at all */
	enum store_step step;
	/* The answer. */
	enum rv_err err;
	struct rv_errtext text;
	struct rv_hash full_hash; /* COPY with a snapshot, EXPORT */
};

/* State that the storage thread keeps from job to job: what could not be removed. An entry or a
 * copy stored beside it would seem to prove it.
 *  - Files of another history: no copy is stored until an INSTALLED succeeds.
 *  - Log entries [stale, stale + n_stale), of attempts that failed: they go before the next entry
 *    or copy is written. */
struct store_thread {
	bool other_history;
	uint64_t stale, n_stale;
};

/* Enters the first step. */
void store_job_begin(struct store_thread *t, struct store_job *j);
/* Enters the step after job->step, which ended with `e` and `text`. */
void store_job_did(struct store_thread *t, struct store_job *j, enum rv_err e, const struct rv_errtext *text);

#endif
