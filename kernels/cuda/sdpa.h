/* sdpa.h: attention by cuDNN, where available: fused, on tensor cores, for bf16 activations.
 *
 * cuDNN 9 is looked up at run time; RIVULET_CUDA_ATTENTION=own turns it off, and so does
 * RIVULET_CUDA_DETERMINISTIC=1, because its backward pass adds in an order that changes. A plan for
 * a shape and direction takes about a second to make and is kept. Our own kernels replace it where
 * cuDNN has no plan, where its version is documented to be wrong (sdpa_faults.h), where it failed
 * at once, and where its first results were wrong (attention_check.h): for that shape and direction
 * until the process ends, with one line on stderr that gives the reason. */
#ifndef RV_CUDA_SDPA_H
#define RV_CUDA_SDPA_H

#include "kernels/cuda/attention.h"
#include "kernels/cuda/vendor/runtime.h"

#include <stddef.h>
#include <stdint.h>

struct sdpa;
struct sdpa_use; /* cuDNN for one shape and direction */

/* Opens cuDNN on the current device, of compute capability sm = 10 major + minor. NULL: it is
 * missing or turned off; `why` (cap bytes) gives the reason. */
struct sdpa *sdpa_open(int sm, char *why, size_t cap);
void sdpa_close(struct sdpa *s); /* NULL is fine */

/* Makes the plans of a shape and allocates their memory ahead of its first call; NULL is fine.
 * Failures are left to our own kernels. A smaller batch of the same shape allocates nothing
 * more. */
void sdpa_reserve(struct sdpa *s, struct attention_shape a);
/* Returns the plan for the call, or NULL if cuDNN must not compute it; s NULL is fine. The first
 * call of a shape and direction makes the plan and allocates its memory; while `stream` captures
 * only proven plans are returned. Borrowed from s. */
struct sdpa_use *sdpa_find(struct sdpa *s, cudaStream_t stream, const struct attention_call *c);
/* Enqueues the call. Returns false if cuDNN failed: nothing was enqueued, and `u` is dropped for
 * good. A refusal by a spoilt capture is no failure. */
bool sdpa_run(struct sdpa *s, struct sdpa_use *u, cudaStream_t stream, const struct attention_call *c);
/* Return true if its results were compared with those of our own kernels; mark that they were. */
bool sdpa_is_proven(const struct sdpa_use *u);
void sdpa_prove(struct sdpa_use *u);
/* Never uses cuDNN again for this shape and direction, and logs `why`. */
void sdpa_leave(struct sdpa *s, struct sdpa_use *u, const char *why);

/* Returns `bytes` of device memory that the calls' own sums have between calls, or NULL if there is
 * less. The caller may use it until the next sdpa_run or sdpa_find. NULL is fine. */
void *sdpa_borrow(struct sdpa *s, size_t bytes);

/* Counts events that make CUDA graphs of earlier passes unusable: memory that moved, and plans that
 * were dropped. NULL: 0. */
uint64_t sdpa_grown(const struct sdpa *s);

#endif
