/* parallel.h: a loop whose iterations run on several threads. Iterations must not depend on each
 * other: the thread and the order of each are not defined, so results cannot depend on the number
 * of threads. */
#ifndef RV_BASE_PARALLEL_H
#define RV_BASE_PARALLEL_H

#include "base/err.h"

enum { PARALLEL_MAX_THREADS = 256 };

/* Returns the processors that this process may use, at most PARALLEL_MAX_THREADS. */
int parallel_cores(void);

struct parallel_loop {
	int n;       /* fn(ctx, 0) ... fn(ctx, n - 1) */
	int threads; /* at most this many at a time, 1..PARALLEL_MAX_THREADS */
	void (*fn)(void *ctx, int i);
	void (*tick)(void *ctx); /* NULL, or called on the calling thread about ten times a second */
	void *ctx;
};

/* Runs the loop and returns when all iterations have. If the system gives fewer threads, those do
 * the work. RV_E_NOMEM, RV_E_BUSY: not even one. */
enum rv_err parallel_run(const struct parallel_loop *loop, struct rv_errtext *et);

#endif
