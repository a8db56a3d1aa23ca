/* pool.h: the cells of a sweep as child processes, a few at a time. One thread.
 *
 * Each child leads a process group of its own: a Ctrl-C in the terminal reaches only this process,
 * which passes it on, so that every child saves its state. No child is left behind: if this process
 * dies, the kernel signals it to stop (PR_SET_PDEATHSIG). */
#ifndef RV_LAB_SWEEP_POOL_H
#define RV_LAB_SWEEP_POOL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SWEEP_POOL_MAX = 256, SWEEP_POOL_SIGNALLED = 128 };

struct sweep_pool {
	int jobs;            /* limit of children at a time, 1..SWEEP_POOL_MAX */
	size_t memory_bytes; /* limit of their expected memory together */
	struct {
		pid_t pid; /* 0: free */
		int cell;
		size_t memory_bytes;
	} children[SWEEP_POOL_MAX];
	int n_running;
	size_t used_bytes;
};

/* Returns true if a child that takes `memory_bytes` may start: alone it always may. */
bool sweep_pool_has_room(const struct sweep_pool *p, size_t memory_bytes);
/* Starts words[0] with these words; its output is appended to `log`. RV_E_IO, RV_E_NOTFOUND (log),
 * RV_E_NOMEM. */
enum rv_err sweep_pool_start(struct sweep_pool *p, int cell, size_t memory_bytes, char *const *words, const char *log,
							 struct rv_errtext *et);
/* Returns true if a child has ended, without waiting: with its cell and exit status
 * (SWEEP_POOL_SIGNALLED + the signal that killed it). */
bool sweep_pool_reap(struct sweep_pool *p, int *cell, int *status);
/* Sends a signal to all children. */
void sweep_pool_signal(const struct sweep_pool *p, int signal);

#endif
