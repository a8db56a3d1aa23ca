/* sdpa.h: attention by cuDNN, where it is: fused, on tensor cores, for bf16 activations.
 *
 * cuDNN 9 is looked for at run time (libcudnn.so.9); RIVULET_CUDA_ATTENTION=own leaves it out, and so does
 * RIVULET_CUDA_DETERMINISTIC=1, because its backward pass adds in an order that changes. Plans take a second or so to
 * make: one for each shape and direction, kept. What cuDNN has no plan for is left to our own kernels. */
#ifndef RV_CUDA_SDPA_H
#define RV_CUDA_SDPA_H

#include "kernels/backend.h"
#include "kernels/cuda/runtime.h"

struct sdpa;

/* NULL: it is not there, or not wanted; `why` (cap bytes) says which. For the current device. */
struct sdpa *sdpa_open(char *why, size_t cap);
void sdpa_close(struct sdpa *s); /* NULL is fine */
/* As attention_forward and attention_backward of kernels/backend.h, bf16. False: nothing was done; s NULL is fine. The
 * first call of a shape makes its plan and allocates its memory. */
bool sdpa_forward(struct sdpa *s, cudaStream_t stream, act_t *out, float *lse, const act_t *qkv,
				  struct attention_shape a);
bool sdpa_backward(struct sdpa *s, cudaStream_t stream, act_t *dqkv, const act_t *dout, const act_t *qkv,
				   const act_t *out, const float *lse, struct attention_shape a);
/* How often memory that these use has moved: a CUDA graph of an earlier count is of no use. NULL: 0. */
uint64_t sdpa_grown(const struct sdpa *s);

#endif
