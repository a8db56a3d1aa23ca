/* cudnn_api.h: cuDNN's types and a table of its functions, as in cublaslt_api.h. */
#ifndef RV_CUDA_VENDOR_CUDNN_API_H
#define RV_CUDA_VENDOR_CUDNN_API_H

#include "kernels/cuda/vendor/runtime.h"

#include <stddef.h>
#include <stdint.h>

enum {
#define VENDOR_VALUE(name, value) name = (value),
#include "kernels/cuda/vendor/cudnn.def"
};
#define VENDOR_ENUM(type) typedef int type;
#include "kernels/cuda/vendor/cudnn.def"

typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;

struct cudnn_api {
#define VENDOR_FUNCTION(result, name, parameters) result(*name) parameters;
#include "kernels/cuda/vendor/cudnn.def"
};

#include "kernels/cuda/vendor/check_types.h"
#include "kernels/cuda/vendor/cudnn.def"

#endif
