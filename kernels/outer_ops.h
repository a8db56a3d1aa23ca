/* outer_ops.h: for plugins: the outer gradient's encoding and the outer step on a device, with the
 * bits of outer/ on the host, so that workers of both kinds share a run.
 *
 * Shared weights and momentum stay in host memory; theta_local is the device's. Chunk by chunk, on
 * two streams in turn: while one chunk is quantized the previous one's bytes go to the host and the
 * next one's weights come. All calls block, behind all work of the backend. */
#ifndef RV_KERNELS_OUTER_OPS_H
#define RV_KERNELS_OUTER_OPS_H

#include "kernels/backend.h"

/* The codecs of outer/codec.h that devices have: blocks of 256 scaled integers. */
enum outer_code { OUTER_INT8, OUTER_INT16 };

enum outer_step_kind { OUTER_STEP_SGD, OUTER_STEP_NESTEROV };

/* A round's vector: n values in chunks of chunk_elems, the last of which may be shorter, encoded by
 * `code`. Chunk i begins at at[i] of the whole vectors; at NULL: at i * chunk_elems. */
struct outer_vector {
	enum outer_code code;
	size_t n, chunk_elems;
	const size_t *at;
};

/* The outer step; sgd with lr 1 is the plain average. */
struct outer_step {
	enum outer_step_kind kind;
	float lr, momentum;
};

struct outer_ops {
	/* Page-locks host memory, so that its copies overlap with computation; false: it is not locked,
	 * and copies are slower. The caller unpins it before freeing it. */
	bool (*pin)(struct backend *be, void *p, size_t bytes);
	void (*unpin)(struct backend *be, void *p);
	/* Allocates the device memory that the two below work in: RV_E_NOMEM. Kept until the backend
	 * closes. */
	enum rv_err (*prepare)(struct backend *be, const struct outer_vector *v, struct rv_errtext *et);
	/* Writes to `out` (host) the chunks of theta - theta_local, encoded by v->code (outer/codec.h),
	 * one after the other. theta: host; local: device. residual (device; NULL: none) is error
	 * feedback: theta - local + residual is encoded, and residual becomes the part that was lost.
	 * RV_E_RANGE: *bad is the first parameter whose difference is not finite; out and residual are
	 * then unspecified. */
	enum rv_err (*encode)(struct backend *be, const struct outer_vector *v, const float *theta, const float *local,
						  float *residual, uint8_t *out, size_t *bad);
	/* Takes the outer step with reduced chunks that decode (the caller has checked): updates the
	 * chunks of theta and momentum (NULL for sgd) in host memory as outer/nesterov.c and sgd.c do,
	 * and sets local's (device; NULL: none) to theta's. */
	void (*step)(struct backend *be, const struct outer_vector *v, const uint8_t *reduced, float *theta,
				 float *momentum, float *local, const struct outer_step *s);
};

#endif
