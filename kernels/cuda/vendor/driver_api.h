/* driver_api.h: the driver's types and a table of its functions, as in cublaslt_api.h. */
#ifndef RV_CUDA_VENDOR_DRIVER_API_H
#define RV_CUDA_VENDOR_DRIVER_API_H

#include <stddef.h>
#include <stdint.h>

enum {
#define VENDOR_VALUE(name, value) name = (value),
#include "kernels/cuda/vendor/driver.def"
};
#define VENDOR_ENUM(type) typedef int type;
#include "kernels/cuda/vendor/driver.def"

typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

struct driver_api {
#define VENDOR_FUNCTION(result, name, parameters) result(*name) parameters;
#include "kernels/cuda/vendor/driver.def"
};

#include "kernels/cuda/vendor/check_types.h"
#include "kernels/cuda/vendor/driver.def"

#endif
