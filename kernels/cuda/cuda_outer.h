/* cuda_outer.h: the outer path of the CUDA plugin. */
#ifndef RV_CUDA_CUDA_OUTER_H
#define RV_CUDA_CUDA_OUTER_H

#include "kernels/cuda/vendor/runtime.h"
#include "kernels/outer_ops.h"

extern const struct outer_ops cuda_outer_ops;

/* A chunk's lane: a stream, and memory for its input and output. */
struct cuda_outer_lane {
	cudaStream_t stream;
	cudaEvent_t done;
	float *theta, *momentum; /* device, (chunk_elems) */
	uint8_t *bytes;          /* device: an encoded chunk in any of the codecs */
	uint8_t *pinned;         /* host, as many: the copied result */
};

enum { CUDA_OUTER_LANES = 2 };

/* A backend's state of the outer path; zero at the start. */
struct cuda_outer {
	struct cuda_outer_lane lanes[CUDA_OUTER_LANES];
	size_t chunk_elems;
	unsigned long long *bad; /* device */
	cudaEvent_t begin;
};

/* Frees what prepare allocated. */
void cuda_outer_release(struct cuda_outer *o);

#endif
