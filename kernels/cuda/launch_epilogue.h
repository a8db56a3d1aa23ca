/* launch_epilogue.h: a product's epilogue as a kernel behind it: for shapes for which the library
 * has no fused one. */
#ifndef RV_CUDA_LAUNCH_EPILOGUE_H
#define RV_CUDA_LAUNCH_EPILOGUE_H

#include "kernels/cuda/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues the epilogue. The product is in c->aux (GEMM_GELU) or in c->d (the others), rounded to
 * its type. GEMM_SUMS reads a once more. Not for GEMM_PLAIN. */
void launch_epilogue(cudaStream_t stream, const struct gemm_call *c);

#ifdef __cplusplus
}
#endif
#endif
