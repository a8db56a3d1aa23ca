/* outer_ops.h: for plugins: the outer gradient's encoding and the outer step on a device, bit for bit what outer/ does
 * on the host, so that workers of both kinds share a run.
 *
 * One chunk at a time is in flight to each side: while one is quantized the last one's bytes go to the host. Shared
 * weights and momentum stay in host memory (page-locked by host_alloc, so that copies overlap); theta_local is the
 * device's. */
#ifndef RV_KERNELS_OUTER_OPS_H
#define RV_KERNELS_OUTER_OPS_H

#include "kernels/backend.h"

enum outer_step_kind { OUTER_STEP_SGD, OUTER_STEP_NESTEROV };

struct outer_vector {
	size_t n, chunk_elems; /* as outer/global.h's chunking: the last chunk may be shorter */
};

struct outer_step {
	enum outer_step_kind kind;
	float lr, momentum;
};

struct outer_ops {
	/* Page-locked host memory, zeroed, 64-byte aligned. RV_E_NOMEM. */
	enum rv_err (*host_alloc)(struct backend *be, size_t bytes, void **out, struct rv_errtext *et);
	void (*host_free)(struct backend *be, void *p);
	/* out: the chunks of theta - theta_local, encoded as the codec "int8" does (outer/codec.h), one after the other, in
	 * host memory. theta (n): host; local (n): device. residual (n, device; NULL: none) is error feedback: theta - local
	 * + residual is encoded, and residual becomes what was lost. RV_E_RANGE: *bad is the first parameter whose
	 * difference is not finite; out is then unspecified, residual as it was. */
	enum rv_err (*encode_int8)(struct backend *be, const struct outer_vector *v, const float *theta, const float *local,
							   float *residual, uint8_t *out, size_t *bad);
	/* The outer step with reduced chunks that decode (the caller has checked): theta (n), momentum (n; not of sgd) in
	 * host memory are stepped as outer/nesterov.c and sgd.c do, and local (n, device) becomes theta. */
	void (*step_int8)(struct backend *be, const struct outer_vector *v, const uint8_t *reduced, float *theta,
					  float *momentum, float *local, const struct outer_step *s);
};

#endif
