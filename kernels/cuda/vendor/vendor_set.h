/* vendor_set.h: which of NVIDIA's libraries are where, and which of them go together.
 *
 * Versions    cuBLASLt and NVRTC exist for CUDA 12 and 13 under different names (libcublasLt.so.12,
 *             .so.13). The plugin's own version is tried first, then the other: a library has its
 *             own CUDA runtime in it, and what the two exchange (streams, device memory) belongs to
 *             the driver. A library of a newer CUDA than the driver's is not used: it would not
 *             start. cuDNN 9 and NCCL 2 have one name for both.
 * cuDNN       is a shell that opens its parts by name when it is first called and ends the process
 *             where one is missing (seen: 9.19 aborts). For attention it also opens NVRTC, NVRTC's
 *             builtins and cuBLASLt of the CUDA that it was built with. All of them are opened here
 *             first, from wherever they lie, so that it finds them; if one is missing cuDNN counts
 *             as missing. */
#ifndef RV_CUDA_VENDOR_SET_H
#define RV_CUDA_VENDOR_SET_H

#include "kernels/cuda/vendor/advice.h"
#include "kernels/cuda/vendor/cublaslt_api.h"
#include "kernels/cuda/vendor/cudnn_api.h"
#include "kernels/cuda/vendor/library.h"
#include "kernels/cuda/vendor/nccl_api.h"
#include "kernels/cuda/vendor/nvrtc_api.h"

enum { VENDOR_TEXT_BYTES = 2048 };

/* The state of one library. */
struct vendor_state {
	bool looked_for;
	enum rv_err err; /* why it is unusable, with `why` as text */
	struct rv_errtext why;
	struct library_found found;
	int version; /* major * 10000 + minor * 100 + patch */
};

struct vendor_set {
	struct library_search search;
	int runtime_major, runtime_minor; /* of the CUDA that the plugin was built with */
	int driver_major;                 /* the newest CUDA that the driver runs; 0: unknown */
	int devices;                      /* GPUs: NCCL matters from two on */
	enum advice_manager manager;
	struct vendor_state cublaslt, cudnn, nvrtc, nccl;
	struct cublaslt_api cublaslt_api;
	struct cudnn_api cudnn_api;
	struct nvrtc_api nvrtc_api;
	struct nccl_api nccl_api;
};

/* Return the functions of a library, looked up once. NULL: it is unusable; `et` gives the reason,
 * the consequence, and how to install it. */
const struct cublaslt_api *vendor_set_cublaslt(struct vendor_set *v, struct rv_errtext *et);
const struct cudnn_api *vendor_set_cudnn(struct vendor_set *v, struct rv_errtext *et);
const struct nccl_api *vendor_set_nccl(struct vendor_set *v, struct rv_errtext *et);
/* Looks up all and writes one line: each one's place and version, what is missing, the consequence,
 * and how to install it. */
void vendor_set_describe(struct vendor_set *v, char out[VENDOR_TEXT_BYTES]);

#endif
