/* copier.h: copies on a thread of its own, one set after the other: the trainer's state is copied while the next inner
 * step computes its gradient, which only reads it. Who is about to change what is copied waits first, and copies with
 * the thread until nothing is left: where that thread does not get a processor, waiting costs what copying would have.
 */
#ifndef RV_WORKER_TRAINER_COPIER_H
#define RV_WORKER_TRAINER_COPIER_H

#include "base/err.h"

#include <stddef.h>

struct copier;

struct copy_part {
	void *to;
	const void *from;
	size_t bytes;
};
enum { COPIER_MAX_PARTS = 64 };

/* RV_E_NOMEM, RV_E_BUSY: no thread. */
enum rv_err copier_new(struct copier **out, struct rv_errtext *et);
/* Waits for the copy under way. NULL is fine. */
void copier_free(struct copier *c);
/* Begins to copy when what came before is done, for which it waits. What the parts point to is the copier's until
 * done(ctx), which is called once, on whatever thread copies the last bytes. */
void copier_start(struct copier *c, const struct copy_part *parts, int n, void (*done)(void *ctx), void *ctx);
/* Until nothing is being copied. */
void copier_wait(struct copier *c);

#endif
