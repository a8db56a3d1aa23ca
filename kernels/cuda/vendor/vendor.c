/* vendor.c: see vendor.h. */
#include "kernels/cuda/vendor/vendor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct symbol {
	const char *name;
	size_t at; /* of its pointer, in the table of functions */
};

#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct cublaslt_api, name)},
static const struct symbol cublaslt_symbols[] = {
#include "kernels/cuda/vendor/cublaslt.def"
	{NULL, 0}};
#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct cudnn_api, name)},
static const struct symbol cudnn_symbols[] = {
#include "kernels/cuda/vendor/cudnn.def"
	{NULL, 0}};
#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct nccl_api, name)},
static const struct symbol nccl_symbols[] = {
#include "kernels/cuda/vendor/nccl.def"
	{NULL, 0}};

/* What the first search found; every later one gives the same. */
static struct {
	pthread_once_t once;
	enum rv_err err;
	struct rv_errtext why;
	struct cublaslt_api f;
} cublaslt = {.once = PTHREAD_ONCE_INIT};
static struct {
	pthread_once_t once;
	enum rv_err err;
	struct rv_errtext why;
	struct cudnn_api f;
} cudnn = {.once = PTHREAD_ONCE_INIT};
static struct {
	pthread_once_t once;
	enum rv_err err;
	struct rv_errtext why;
	struct nccl_api f;
} nccl = {.once = PTHREAD_ONCE_INIT};

static enum rv_err load(const char *file, const struct symbol *symbols, void *table, struct rv_errtext *et) {
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return rv_fail(et, RV_E_NOTFOUND, "%s", dlerror());
	for (; symbols->name; symbols++) {
		void *function = dlsym(library, symbols->name);
		if (!function)
			return rv_fail(et, RV_E_UNSUPPORTED, "%s lacks %s", file, symbols->name);
		memcpy((char *)table + symbols->at, &function, sizeof function);
	}
	return RV_OK;
}

static void find_cublaslt(void) {
	cublaslt.err = load("libcublasLt.so.13", cublaslt_symbols, &cublaslt.f, &cublaslt.why);
}

static void find_cudnn(void) {
	cudnn.err = load("libcudnn.so.9", cudnn_symbols, &cudnn.f, &cudnn.why);
}

static void find_nccl(void) {
	nccl.err = load("libnccl.so.2", nccl_symbols, &nccl.f, &nccl.why);
}

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	(void)pthread_once(&cublaslt.once, find_cublaslt);
	if (cublaslt.err)
		(void)rv_fail(et, cublaslt.err, "cuBLASLt: %s", cublaslt.why.text);
	return cublaslt.err ? NULL : &cublaslt.f;
}

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	(void)pthread_once(&cudnn.once, find_cudnn);
	if (cudnn.err)
		(void)rv_fail(et, cudnn.err, "cuDNN: %s", cudnn.why.text);
	return cudnn.err ? NULL : &cudnn.f;
}

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	(void)pthread_once(&nccl.once, find_nccl);
	if (nccl.err)
		(void)rv_fail(et, nccl.err, "NCCL: %s", nccl.why.text);
	return nccl.err ? NULL : &nccl.f;
}
