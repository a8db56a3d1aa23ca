/* normals.h: many normally distributed values at once: a model's initial weights. */
#ifndef RV_KERNELS_NORMALS_H
#define RV_KERNELS_NORMALS_H

#include "base/rng.h"

#include <stddef.h>

/* Fills out (n, host memory) with (float)(std * rv_rng_normal(...)) of the n counters from
 * from->counter on. Uses the widest instruction set of this machine and up to `threads` threads (0:
 * all processors of this process); the bits depend on neither, nor on how many calls the values are
 * divided into. Borrows `from`, which does not move on. */
void normals_fill(float *out, size_t n, const struct rv_rng *from, float std, int threads);

#endif
