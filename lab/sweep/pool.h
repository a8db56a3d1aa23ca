/* pool.h: the cells of a sweep as child processes, a few at a time. One thread.
 *
 * Each child leads a process group of its own: a Ctrl-C in the terminal reaches this process only, which passes it on,
 * so that every child saves what it has. Nobody is left behind: a child that this process does not outlive is told to
 * stop (PR_SET_PDEATHSIG). */
#ifndef RV_LAB_SWEEP_POOL_H
#define RV_LAB_SWEEP_POOL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SWEEP_POOL_MAX = 256, SWEEP_POOL_SIGNALLED = 128 };

struct sweep_pool {
	int jobs;            /* at most so many at a time, 1..SWEEP_POOL_MAX */
	size_t memory_bytes; /* and while what they will take fits this */
	struct {
		pid_t pid; /* 0: free */
		int cell;
		size_t memory_bytes;
	} children[SWEEP_POOL_MAX];
	int n_running;
	size_t used_bytes;
};

/* True when a child that takes `memory_bytes` may start: alone it always may. */
bool sweep_pool_has_room(const struct sweep_pool *p, size_t memory_bytes);
/* Starts words[0] with these words; what it prints is appended to `log`. RV_E_IO, RV_E_NOTFOUND (log), RV_E_NOMEM. */
enum rv_err sweep_pool_start(struct sweep_pool *p, int cell, size_t memory_bytes, char *const *words, const char *log,
							 struct rv_errtext *et);
/* A child that has ended, without waiting: its cell and exit status (SWEEP_POOL_SIGNALLED + the signal that killed
 * it). */
bool sweep_pool_reap(struct sweep_pool *p, int *cell, int *status);
void sweep_pool_signal(const struct sweep_pool *p, int signal);

#endif
