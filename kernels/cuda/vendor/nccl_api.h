/* nccl_api.h: NCCL's types and a table of its functions, as in cublaslt_api.h. */
#ifndef RV_CUDA_VENDOR_NCCL_API_H
#define RV_CUDA_VENDOR_NCCL_API_H

#include "kernels/cuda/vendor/runtime.h"

#include <stddef.h>

enum {
#define VENDOR_VALUE(name, value) name = (value),
#include "kernels/cuda/vendor/nccl.def"
};
#define VENDOR_ENUM(type) typedef int type;
#include "kernels/cuda/vendor/nccl.def"

typedef struct ncclComm *ncclComm_t;

typedef struct {
	char internal[128];
} ncclUniqueId;

typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking;
} ncclConfig_t;

struct nccl_api {
#define VENDOR_FUNCTION(result, name, parameters) result(*name) parameters;
#include "kernels/cuda/vendor/nccl.def"
};

#include "kernels/cuda/vendor/check_types.h"
#include "kernels/cuda/vendor/nccl.def"

#endif
