/* sdpa.h: attention by cuDNN, where it is: fused, on tensor cores, for bf16 activations.
 *
 * cuDNN 9 is looked for at run time; RIVULET_CUDA_ATTENTION=own leaves it out, and so does RIVULET_CUDA_DETERMINISTIC=1,
 * because its backward pass adds in an order that changes. A plan for a shape and direction takes a second or so to make
 * and is kept. Our own kernels take what cuDNN has no plan for, what its version is documented to do wrong
 * (sdpa_faults.h), what it failed at once, and what it computed wrongly on first use (attention_check.h): for that shape
 * and direction until the process ends, with one line on stderr that says why. */
#ifndef RV_CUDA_SDPA_H
#define RV_CUDA_SDPA_H

#include "kernels/cuda/attention.h"
#include "kernels/cuda/vendor/runtime.h"

#include <stddef.h>
#include <stdint.h>

struct sdpa;
struct sdpa_use; /* cuDNN for one shape and direction */

/* For the current device, of compute capability sm = 10 major + minor. NULL: it is not there, or not wanted; `why` (cap
 * bytes) says which. */
struct sdpa *sdpa_open(int sm, char *why, size_t cap);
void sdpa_close(struct sdpa *s); /* NULL is fine */

/* Makes the plans of a shape and allocates their memory ahead of its first call; NULL is fine. What fails is left to our
 * own kernels. A smaller batch of the same shape allocates nothing more. */
void sdpa_reserve(struct sdpa *s, struct attention_shape a);
/* Returns what runs the call, or NULL: cuDNN is not to be used for it; s NULL is fine. The first call of a shape and
 * direction makes the plan and allocates its memory; while `stream` captures only what is proven is returned. Borrowed
 * from s. */
struct sdpa_use *sdpa_find(struct sdpa *s, cudaStream_t stream, const struct attention_call *c);
/* Enqueues the call. Returns false if cuDNN failed: nothing was enqueued, and `u` is left for good. What a spoilt capture
 * refuses is no failure. */
bool sdpa_run(struct sdpa *s, struct sdpa_use *u, cudaStream_t stream, const struct attention_call *c);
/* Whether its results were compared with those of our own kernels; marks that they were. */
bool sdpa_is_proven(const struct sdpa_use *u);
void sdpa_prove(struct sdpa_use *u);
/* Never uses cuDNN again for this shape and direction, and logs `why`. */
void sdpa_leave(struct sdpa *s, struct sdpa_use *u, const char *why);

/* Returns `bytes` of device memory that the calls' own sums have between calls, or NULL: there is less. Any call of
 * sdpa_run and sdpa_find ends its use. NULL is fine. */
void *sdpa_borrow(struct sdpa *s, size_t bytes);

/* Counts what makes CUDA graphs of earlier passes unusable: memory that moved, and plans that were left. NULL: 0. */
uint64_t sdpa_grown(const struct sdpa *s);

#endif
