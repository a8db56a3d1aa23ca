/* cuda_weights.c: the bf16 copies of weights. A model keeps fp32 masters; tensor cores read bf16.
 * The copy is made of a whole allocation by reserve, or when a product first uses a part of it (2
 * bytes per parameter), is kept current by adamw, and is brought up to date before a product if
 * anything else wrote the masters. */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <stdio.h>

struct cuda_allocation *cuda_allocation_of(const struct cuda_backend *cu, const void *p) {
	const char *at = p;
	for (struct cuda_allocation *a = cu->allocations; a; a = a->next)
		if (at >= a->base && at < a->base + a->bytes)
			return a;
	return NULL;
}

static size_t element_of(const struct cuda_allocation *a, const void *p) {
	return (size_t)((const char *)p - a->base) / sizeof(float);
}

static void mark_stale(struct cuda_allocation *a, size_t begin, size_t end) {
	bool none = a->stale_begin == a->stale_end;
	a->stale_begin = none || begin < a->stale_begin ? begin : a->stale_begin;
	a->stale_end = none || end > a->stale_end ? end : a->stale_end;
}

static bool make_copy(struct cuda_allocation *a) {
	void *p = NULL;
	if (cudaMalloc(&p, a->bytes / 2) != cudaSuccess) {
		(void)cudaGetLastError();
		return false;
	}
	a->copy = p;
	mark_stale(a, 0, a->bytes / sizeof(float));
	return true;
}

static struct cuda_allocation *without_copy(const struct cuda_backend *cu, const float *p) {
	struct cuda_allocation *a = p && cu->base.act != DTYPE_F32 ? cuda_allocation_of(cu, p) : NULL;
	return a && !a->copy ? a : NULL;
}

bool cuda_weights_reserve(struct cuda_backend *cu, const float *p) {
	struct cuda_allocation *a = without_copy(cu, p);
	return !a || make_copy(a);
}

size_t cuda_weights_missing_bytes(const struct cuda_backend *cu, const float *p) {
	const struct cuda_allocation *a = without_copy(cu, p);
	return a ? a->bytes / 2 : 0;
}

static void bring_up_to_date(struct cuda_backend *cu, struct cuda_allocation *a) {
	size_t begin = a->stale_begin;
	if (begin == a->stale_end)
		return;
	launch_to_bf16(cu->stream, a->copy + begin, (const float *)(const void *)a->base + begin, a->stale_end - begin);
	cuda_vectors_update(a, begin, a->stale_end, cu->stream);
	a->stale_begin = a->stale_end = 0;
}

const void *cuda_weights(struct cuda_backend *cu, const float *w, size_t n) {
	if (cu->base.act == DTYPE_F32 || !w)
		return w;
	struct cuda_allocation *a = cuda_allocation_of(cu, w);
	RV_ASSERT(a && element_of(a, w) + n <= a->bytes / sizeof(float));
	if (!a->copy && !make_copy(a)) {
		(void)fprintf(stderr, "cuda backend: no memory for the bf16 copy of the weights, %zu bytes\n", a->bytes / 2);
		RV_ASSERT(a->copy);
	}
	bring_up_to_date(cu, a);
	return a->copy + element_of(a, w);
}

void cuda_weights_changed(struct cuda_backend *cu, const void *p, size_t bytes) {
	struct cuda_allocation *a = bytes ? cuda_allocation_of(cu, p) : NULL;
	if (a && a->copy)
		mark_stale(a, element_of(a, p), element_of(a, (const char *)p + bytes + sizeof(float) - 1));
}

void *cuda_weights_overwritten(struct cuda_backend *cu, const float *p, size_t n) {
	struct cuda_allocation *a = n ? cuda_allocation_of(cu, p) : NULL;
	if (!a || !a->copy)
		return NULL;
	size_t begin = element_of(a, p), end = begin + n;
	if (a->stale_begin >= begin && a->stale_end <= end)
		a->stale_begin = a->stale_end = 0;
	return a->copy + begin;
}

void cuda_weights_refresh(struct cuda_backend *cu, const float *p) {
	struct cuda_allocation *a = cuda_allocation_of(cu, p);
	if (a && a->copy)
		bring_up_to_date(cu, a);
}

void cuda_weights_all_changed(struct cuda_backend *cu, const float *p) {
	struct cuda_allocation *a = cuda_allocation_of(cu, p);
	if (a && a->copy)
		mark_stale(a, 0, a->bytes / sizeof(float));
}
