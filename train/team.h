/* team.h: n threads that stay, each for one device: what one of them asks of a backend, a library that keeps state by
 * thread finds again. */
#ifndef RV_TRAIN_TEAM_H
#define RV_TRAIN_TEAM_H

#include "base/err.h"

struct team;

/* RV_E_NOMEM, RV_E_BUSY: the system gives no more threads. */
enum rv_err team_new(int n, struct team **out, struct rv_errtext *et);
void team_free(struct team *t); /* NULL is fine */
/* fn(ctx, i) on thread i of each i in [0, n), all at the same time; returns when all have. One caller at a time. */
void team_run(struct team *t, void (*fn)(void *ctx, int i), void *ctx);

#endif
