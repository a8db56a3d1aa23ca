/* nvrtc_api.h: NVRTC's types and a table of its functions, as in cublaslt_api.h. */
#ifndef RV_CUDA_VENDOR_NVRTC_API_H
#define RV_CUDA_VENDOR_NVRTC_API_H

#include <stddef.h>

enum {
#define VENDOR_VALUE(name, value) name = (value),
#include "kernels/cuda/vendor/nvrtc.def"
};
#define VENDOR_ENUM(type) typedef int type;
#include "kernels/cuda/vendor/nvrtc.def"

struct nvrtc_api {
#define VENDOR_FUNCTION(result, name, parameters) result(*name) parameters;
#include "kernels/cuda/vendor/nvrtc.def"
};

#include "kernels/cuda/vendor/check_types.h"
#include "kernels/cuda/vendor/nvrtc.def"

#endif
