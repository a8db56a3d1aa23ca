/* launch_outer.h: the outer path's kernels; see cuda_outer.c. Pointers are device memory. */
#ifndef RV_CUDA_LAUNCH_OUTER_H
#define RV_CUDA_LAUNCH_OUTER_H

#include "kernels/cuda/vendor/runtime.h"
#include "kernels/outer_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Encodes one chunk of n values of theta - local (+ residual, which becomes the part that was lost)
 * by the codec of `code` (outer/codec.h): scales (ceil(n / 256)), codes (n integers of the codec's
 * size). *bad: lowered to the index, from `first` on, of the first difference that is not
 * finite. */
struct outer_encode {
	enum outer_code code;
	const float *theta, *local;
	float *residual; /* NULL: none */
	float *scales;
	void *codes;
	unsigned long long *bad, first;
	size_t n;
};
void launch_outer_encode(cudaStream_t stream, const struct outer_encode *p);

/* Decodes one chunk of n values and takes the outer step with it. */
struct outer_apply {
	enum outer_code code;
	const float *scales;
	const void *codes;
	float *theta, *momentum, *local; /* momentum: OUTER_STEP_NESTEROV; local: NULL: none */
	struct outer_step step;
	size_t n;
};
void launch_outer_apply(cudaStream_t stream, const struct outer_apply *p);

#ifdef __cplusplus
}
#endif
#endif
