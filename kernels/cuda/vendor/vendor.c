/* vendor.c: see vendor.h. */
#include "kernels/cuda/vendor/vendor.h"

#include "kernels/cuda/vendor/vendor_set.h"

#include <pthread.h>

/* The process's own set. Results stay; `lock` is held during a search. */
static struct {
	pthread_mutex_t lock;
	bool ready; /* set, and `set` describes the machine */
	struct vendor_set set;
	char text[VENDOR_TEXT_BYTES]; /* "" until first requested */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct vendor_set *lock_set(void) {
	(void)pthread_mutex_lock(&process.lock);
	if (process.ready)
		return &process.set;
	const struct vendor_environment env = vendor_environment_now();
	int driver = 0, devices = 0;
	if (cudaDriverGetVersion(&driver) != cudaSuccess)
		driver = 0;
	if (cudaGetDeviceCount(&devices) != cudaSuccess)
		devices = 0;
	(void)cudaGetLastError();
	process.set = (struct vendor_set){.search = library_search_with(&env),
									  .runtime_major = CUDART_VERSION / 1000,
									  .runtime_minor = CUDART_VERSION / 10 % 100,
									  .driver_major = driver / 1000,
									  .devices = devices,
									  .manager = advice_manager_of("/etc/os-release")};
	process.ready = true;
	return &process.set;
}

static void unlock_set(void) {
	(void)pthread_mutex_unlock(&process.lock);
}

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	const struct cublaslt_api *api = vendor_set_cublaslt(lock_set(), et);
	unlock_set();
	return api;
}

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	const struct cudnn_api *api = vendor_set_cudnn(lock_set(), et);
	unlock_set();
	return api;
}

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	const struct nccl_api *api = vendor_set_nccl(lock_set(), et);
	unlock_set();
	return api;
}

const char *vendor_describe(void) {
	struct vendor_set *v = lock_set();
	if (!process.text[0])
		vendor_set_describe(v, process.text);
	unlock_set();
	return process.text;
}
