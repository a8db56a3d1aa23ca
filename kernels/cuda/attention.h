/* attention.h: one call of attention, forward or backward, and our own kernels for it. */
#ifndef RV_CUDA_ATTENTION_H
#define RV_CUDA_ATTENTION_H

#include "kernels/backend.h"
#include "kernels/cuda/vendor/runtime.h"

#include <stdbool.h>

/* Device memory, laid out as in attention_forward and attention_backward of kernels/backend.h. */
struct attention_call {
	struct attention_shape shape;
	bool backward;
	const act_t *qkv;
	act_t *out; /* forward writes out and lse, backward reads them */
	float *lse;
	const act_t *dout; /* backward only */
	act_t *dqkv;
};

/* Return the elements of a token's row of qkv, and of out. */
static inline size_t attention_qkv_width(struct attention_shape s) {
	return (size_t)(s.heads + 2 * s.kv_heads) * (size_t)s.head_dim;
}
static inline size_t attention_out_width(struct attention_shape s) {
	return (size_t)s.heads * (size_t)s.head_dim;
}
/* Returns the rows of the score matrix, (B, heads, T): one float each in lse. */
static inline size_t attention_rows(struct attention_shape s) {
	return (size_t)s.b * (size_t)s.heads * (size_t)s.t;
}

/* Enqueues our own kernels. delta: attention_rows() floats of scratch, backward only. */
void attention_own(cudaStream_t stream, enum dtype act, const struct attention_call *c, float *delta);

#endif
