/* without_cublaslt.c: vendor.h on a machine that has a GPU (the emulator's) and none of NVIDIA's
 * libraries. */
#include "kernels/cuda/vendor/vendor.h"

#include "kernels/cuda/vendor/vendor_set.h"

static struct vendor_set nothing(void) {
	const struct vendor_environment env = {.root = "/nonexistent", .skip_loader = true};
	return (struct vendor_set){
		.search = library_search_with(&env), .runtime_major = 13, .devices = 2, .manager = ADVICE_DNF};
}

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	struct vendor_set v = nothing();
	return vendor_set_cublaslt(&v, et);
}

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	struct vendor_set v = nothing();
	return vendor_set_cudnn(&v, et);
}

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	struct vendor_set v = nothing();
	return vendor_set_nccl(&v, et);
}

const char *vendor_describe(void) {
	static char text[VENDOR_TEXT_BYTES];
	struct vendor_set v = nothing();
	vendor_set_describe(&v, text);
	return text;
}
