/* team.h: n persistent threads, one per device, for libraries that keep state per thread. */
#ifndef RV_TRAIN_TEAM_H
#define RV_TRAIN_TEAM_H

#include "base/err.h"

struct team;

/* Starts n threads. Returns RV_E_NOMEM, or RV_E_BUSY if the system has no more threads. */
enum rv_err team_new(int n, struct team **out, struct rv_errtext *et);
void team_free(struct team *t); /* NULL is fine */
/* Runs fn(ctx, i) on thread i, for all i in [0, n) at a time, and waits. One caller at a time. */
void team_run(struct team *t, void (*fn)(void *ctx, int i), void *ctx);

#endif
