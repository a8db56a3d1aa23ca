/* vendor.h: NVIDIA's libraries beside the driver, none of which is linked. Each is looked up at its
 * first use (places.h: where; vendor_set.h: which versions), once per process, and stays loaded
 * until the process ends, because its threads may outlive any use of it. */
#ifndef RV_CUDA_VENDOR_H
#define RV_CUDA_VENDOR_H

#include "base/err.h"
#include "kernels/cuda/vendor/cublaslt_api.h"
#include "kernels/cuda/vendor/cudnn_api.h"
#include "kernels/cuda/vendor/nccl_api.h"

/* Return the library's functions, or NULL if no usable library was found: `et` gives the reason.
 * Any thread, at any time; the first call of each blocks on the disk. The emulator has none of them
 * (tests/emu/no_vendor.c). */
const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et);
const struct cudnn_api *vendor_cudnn(struct rv_errtext *et);
const struct nccl_api *vendor_nccl(struct rv_errtext *et);

/* Returns one line: each library's place and version, and what is missing and how to install it.
 * The same string every time. */
const char *vendor_describe(void);

#endif
