/* comm_nccl.h: exchanges between GPUs by NCCL, which is looked up at run time: without it they go
 * through the host. */
#ifndef RV_CUDA_COMM_NCCL_H
#define RV_CUDA_COMM_NCCL_H

#include "kernels/comm_ops.h"

extern const struct comm_ops comm_nccl_ops;

#ifdef RV_CUDA_EMU /* the emulated plugin has no such library; tests have a stand-in */
#define COMM_NCCL_OPS NULL
#else
#define COMM_NCCL_OPS (&comm_nccl_ops)
#endif

#endif
