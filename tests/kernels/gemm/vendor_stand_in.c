/* vendor_stand_in.c: vendor.h with the stand-in as cuBLASLt, and none of the others. */
#include "tests/kernels/gemm/vendor_stand_in.h"

#include "kernels/cuda/vendor/vendor.h"
#include "tests/kernels/gemm/cublaslt_stand_in.h"

static bool missing;

void vendor_stand_in_missing(bool is_missing) {
	missing = is_missing;
}

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	static const struct cublaslt_api api = {
#define VENDOR_FUNCTION(result, name, parameters) .name = (name),
#include "kernels/cuda/vendor/cublaslt.def"
	};
	if (missing)
		(void)rv_fail(et, RV_E_NOTFOUND, "cuBLASLt: libcublasLt.so.13: there is no such file");
	return missing ? NULL : &api;
}

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, "no cuDNN in this test");
	return NULL;
}

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, "no NCCL in this test");
	return NULL;
}
