/* jobs.h: a thread that does jobs in the order they were posted, and gives each back to the thread that posted it.
 *
 * The worker has two: the *trainer* (inner steps, encode, apply) and the *storage* thread (hashing, writing). Nothing
 * is shared but the job itself: until its `done` is called it belongs to the job thread.
 */
#ifndef RV_BASE_JOBS_H
#define RV_BASE_JOBS_H

#include "base/err.h"

#include <stdbool.h>

/* Embedded in what the job is about (RV_CONTAINER_OF brings one back to it). */
struct job {
	void (*run)(struct job *j);  /* on the job thread */
	void (*done)(struct job *j); /* on the poster's thread, inside jobs_reap(); may free the job or post it again */
	struct job *next;            /* jobs' own */
};

#define JOB_OWNER(job_ptr, type, member) ((type *)(void *)((char *)(job_ptr)-offsetof(type, member)))

struct jobs;

/* `wake(ctx)` is called on the job thread whenever a job is finished: it makes the poster call jobs_reap(). `name`:
 * what debuggers show (at most 15 characters). RV_E_NOMEM, RV_E_BUSY: no thread. */
enum rv_err jobs_new(const char *name, void (*wake)(void *ctx), void *ctx, struct jobs **out, struct rv_errtext *et);
/* Waits for the running job and those queued; their `done` is not called any more. NULL is fine. */
void jobs_free(struct jobs *t);
void jobs_post(struct jobs *t, struct job *j);
/* Calls `done` of everything finished. Never blocks. */
void jobs_reap(struct jobs *t);
/* True when nothing is queued, running, or waiting to be reaped. */
bool jobs_idle(struct jobs *t);

#endif
