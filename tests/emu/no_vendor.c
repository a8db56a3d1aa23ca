/* no_vendor.c: vendor.h in the emulator, which has none of NVIDIA's libraries: they would need a
 * device. */
#include "kernels/cuda/vendor/vendor.h"

static const char none[] = "the emulator has no libraries of NVIDIA";

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, none);
	return NULL;
}

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, none);
	return NULL;
}

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, none);
	return NULL;
}

const char *vendor_describe(void) {
	return none;
}
