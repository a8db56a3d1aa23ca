/* jobs.h: a thread that does jobs in the order they were posted, and gives each back to the thread
 * that posted it.
 *
 * The worker has two: the *trainer* (inner steps, encode, apply) and the *storage* thread (hashing,
 * writing). Nothing is shared but the job itself: until its `done` is called it belongs to the job
 * thread. */
#ifndef RV_BASE_JOBS_H
#define RV_BASE_JOBS_H

#include "base/err.h"

#include <stdbool.h>

/* A job, embedded in the caller's own struct (JOB_OWNER leads back to it). */
struct job {
	void (*run)(struct job *j);  /* on the job thread */
	void (*done)(struct job *j); /* on the poster's thread, in jobs_reap(); may free the job or post
	                                it again */
	/* Instead of `done`, in jobs_free(), on the thread that calls it: frees what the job holds, and
	 * may free the job. NULL: it holds nothing. */
	void (*dropped)(struct job *j);
	struct job *next; /* private to jobs.c */
};

#define JOB_OWNER(job_ptr, type, member) ((type *)(void *)((char *)(job_ptr)-offsetof(type, member)))

struct jobs;

/* Starts the thread. It calls `wake(ctx)` whenever a job is finished, to make the poster call
 * jobs_reap(). `name` is what debuggers show (at most 15 characters), a literal. RV_E_NOMEM,
 * RV_E_BUSY (no thread). */
enum rv_err jobs_new(const char *name, void (*wake)(void *ctx), void *ctx, struct jobs **out, struct rv_errtext *et);
/* Waits for the running job and those queued, and calls `dropped`, not `done`, for each job that
 * was not reaped, in order. NULL is fine. */
void jobs_free(struct jobs *t);
/* Queues `j`. Never blocks for long. */
void jobs_post(struct jobs *t, struct job *j);
/* Calls `done` for every finished job. Never blocks. */
void jobs_reap(struct jobs *t);
/* Returns true if nothing is queued, running, or waiting to be reaped. */
bool jobs_idle(struct jobs *t);

#endif
