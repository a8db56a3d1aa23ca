/* copier.h: copies on a thread of its own, one after the other: the trainer's state is copied while the next inner step
 * computes its gradient, which only reads it. Who is about to change what is copied waits first.
 */
#ifndef RV_WORKER_COPIER_H
#define RV_WORKER_COPIER_H

#include "base/err.h"

struct copier;

enum rv_err copier_new(struct copier **out, struct rv_errtext *et);
/* Waits for the copy under way. NULL is fine. */
void copier_free(struct copier *c);
/* Begins run(ctx) when the one before has ended, for which it waits. What `ctx` points to is the copier's until `run`
 * returns. */
void copier_start(struct copier *c, void (*run)(void *ctx), void *ctx);
/* Until nothing is being copied. */
void copier_wait(struct copier *c);

#endif
