/* host_memory.h: shared by all backends that compute in plain memory: allocation, copies, and
 * activation arrays as the floats that they are there. */
#ifndef RV_KERNELS_HOST_MEMORY_H
#define RV_KERNELS_HOST_MEMORY_H

#include "kernels/backend.h"

/* Allocates zeroed memory, 64-byte aligned; from 2 MiB on aligned to 2 MiB and offered to the
 * kernel for huge pages. NULL: no memory. */
void *host_zalloc(size_t bytes);

/* The memory operations of struct backend_ops. */
enum rv_err host_backend_alloc(struct backend *be, size_t bytes, void **out, struct rv_errtext *et);
void host_backend_free(struct backend *be, void *p);
void host_backend_copy(struct backend *be, void *dst, const void *src, size_t bytes);
void host_backend_zero(struct backend *be, void *p, size_t bytes);
void host_backend_sync(struct backend *be);

static inline float *act_f32(act_t *a) {
	return (float *)(void *)a;
}

static inline const float *act_f32c(const act_t *a) {
	return (const float *)(const void *)a;
}

#endif
