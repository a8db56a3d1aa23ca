/* parallel.h: a loop whose iterations run on several threads. Iterations must not depend on each other: which thread
 * runs one, and when, is not defined, so results cannot depend on how many threads there are. */
#ifndef RV_BASE_PARALLEL_H
#define RV_BASE_PARALLEL_H

#include "base/err.h"

enum { PARALLEL_MAX_THREADS = 256 };

struct parallel_loop {
	int n;       /* fn(ctx, 0) ... fn(ctx, n - 1) */
	int threads; /* at most this many at a time, 1..PARALLEL_MAX_THREADS */
	void (*fn)(void *ctx, int i);
	void (*tick)(void *ctx); /* NULL, or called on the calling thread about ten times a second meanwhile */
	void *ctx;
};

/* Returns when all iterations have. When the system gives fewer threads, those do the work. RV_E_NOMEM: not even one.
 */
enum rv_err parallel_run(const struct parallel_loop *loop, struct rv_errtext *et);

#endif
