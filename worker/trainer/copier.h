/* copier.h: copies sets of memory on its own thread: the trainer's state is copied while the next
 * inner step computes its gradient, which only reads it. Before the trainer changes the state it
 * waits, and copies along with the thread until nothing is left: if that thread gets no processor,
 * waiting costs no more than copying. */
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
enum { COPIER_MAX_PARTS = 96 };

/* Starts the thread. RV_E_NOMEM, RV_E_BUSY: no thread. */
enum rv_err copier_new(struct copier **out, struct rv_errtext *et);
/* Waits for the copy under way and frees the copier. `c` may be NULL. */
void copier_free(struct copier *c);
/* Waits for an earlier set, then begins to copy. The copier uses the memory of the parts until
 * done(ctx), which is called once, on the thread that copies the last bytes. */
void copier_start(struct copier *c, const struct copy_part *parts, int n, void (*done)(void *ctx), void *ctx);
/* Waits until nothing is being copied, and helps. */
void copier_wait(struct copier *c);

#endif
