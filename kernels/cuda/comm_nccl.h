/* comm_nccl.h: exchanges between GPUs by NCCL, which is looked for at run time: without it they go through the host. */
#ifndef RV_CUDA_COMM_NCCL_H
#define RV_CUDA_COMM_NCCL_H

#include "kernels/comm_ops.h"

#ifdef RV_CUDA_EMU /* no such library there */
#define COMM_NCCL_OPS NULL
#else
extern const struct comm_ops comm_nccl_ops;
#define COMM_NCCL_OPS (&comm_nccl_ops)
#endif

#endif
