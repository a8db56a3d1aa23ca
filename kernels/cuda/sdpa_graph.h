/* sdpa_graph.h: attention as a graph of cuDNN operations, and the execution plan for it. Private to
 * sdpa*.c. */
#ifndef RV_CUDA_SDPA_GRAPH_H
#define RV_CUDA_SDPA_GRAPH_H

#include "kernels/backend.h"
#include "kernels/cuda/vendor/cudnn_api.h"

/* Tensors of the caller: their ids in the graph and its variant pack. */
enum sdpa_tensor {
	SDPA_Q = 1,
	SDPA_K,
	SDPA_V,
	SDPA_OUT,
	SDPA_LSE,
	SDPA_DOUT,
	SDPA_DQ,
	SDPA_DK,
	SDPA_DV,
	SDPA_ROW_SUM, /* fp32 (B, heads, T): backward's own */
	SDPA_DQ_SUM,  /* fp32 (B, heads, T, head_dim): backward's own */
	SDPA_SCALE,   /* host floats from here on */
	SDPA_MASKED,
	SDPA_ONE,
	SDPA_TENSORS
};

enum { SDPA_DESCRIPTORS_MAX = 192 };

/* A plan and all that it was made of; the plan is the last one. */
struct sdpa_plan {
	cudnnBackendDescriptor_t descriptors[SDPA_DESCRIPTORS_MAX];
	int n;
	cudnnBackendDescriptor_t plan;
	int64_t workspace_bytes;
};

/* Makes a plan for the device of `handle`, or, handle NULL, for the one that `device_properties`
 * describes (cuDNN's own JSON), which needs no GPU. Returns false if cuDNN has none for this shape:
 * `why` then names the step that failed, and nothing is left. */
bool sdpa_plan_make(const struct cudnn_api *api, cudnnHandle_t handle, const char *device_properties,
					struct attention_shape s, bool backward, struct sdpa_plan *out, const char **why);
void sdpa_plan_release(const struct cudnn_api *api, struct sdpa_plan *p);

#endif
