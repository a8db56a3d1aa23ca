/* cublaslt_api.h: cuBLASLt's types and a table of its functions, under NVIDIA's own names: neither
 * its header nor its library is needed to build. No file includes this and cublasLt.h. */
#ifndef RV_CUDA_VENDOR_CUBLASLT_API_H
#define RV_CUDA_VENDOR_CUBLASLT_API_H

#include "kernels/cuda/vendor/runtime.h"

#include <stddef.h>
#include <stdint.h>

enum {
#define VENDOR_VALUE(name, value) name = (value),
#include "kernels/cuda/vendor/cublaslt.def"
};
#define VENDOR_ENUM(type) typedef int type;
#include "kernels/cuda/vendor/cublaslt.def"

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublaslt_matmul_desc *cublasLtMatmulDesc_t;
typedef struct cublaslt_matrix_layout *cublasLtMatrixLayout_t;
typedef struct cublaslt_matmul_preference *cublasLtMatmulPreference_t;

typedef struct {
	uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize; /* bytes */
	cublasStatus_t state; /* the rest holds only with CUBLAS_STATUS_SUCCESS */
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;

struct cublaslt_api {
#define VENDOR_FUNCTION(result, name, parameters) result(*name) parameters;
#include "kernels/cuda/vendor/cublaslt.def"
};

#include "kernels/cuda/vendor/check_types.h"
#include "kernels/cuda/vendor/cublaslt.def"

#endif
