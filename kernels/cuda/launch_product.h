/* launch_product.h: the matrix product of gemm.h as a kernel of our own, for shapes that cuBLASLt
 * refuses and machines without it: fp32 sums, any alignment. */
#ifndef RV_CUDA_LAUNCH_PRODUCT_H
#define RV_CUDA_LAUNCH_PRODUCT_H

#include "kernels/cuda/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues all of `call`, its epilogue (launch_epilogue.h) included. */
void launch_product(cudaStream_t stream, const struct gemm_call *call);
/* Return true if both operands are bf16 and aligned for copies of 16 bytes; and then compute the
 * same on tensor cores, epilogue included (product_mma.cu). */
bool launch_product_mma_fits(const struct gemm_call *call);
void launch_product_mma(cudaStream_t stream, const struct gemm_call *call);

#ifdef __cplusplus
}
#endif
#endif
