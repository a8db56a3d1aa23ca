/* cuda_offload.c: weights in the host's memory (backend_ops.alloc_on_host). Kernels read pinned
 * memory as their own, over the bus: that is good for rows of embeddings and for making the bf16
 * copies of matrices, each of which reads an element once. Vectors of norms, which every block
 * reads, have copies in fp32 here.
 *
 * An optimizer's step on the host overlaps with operations of the device: gradients go to the host
 * on a stream of their own, weights to the device on that of the inputs, and the computation's
 * stream waits for an event behind each write. */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_VECTORS = 64 };

enum rv_err cuda_alloc_on_host(struct backend *be, size_t bytes, void **out, struct rv_errtext *et) {
	struct cuda_backend *cu = cuda_of(be);
	*out = NULL;
	if (be->act == DTYPE_F32)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "cuda backend: weights in the host's memory need products in bf16; this run has fp32");
	struct cuda_allocation *a = calloc(1, sizeof *a);
	void *p = NULL;
	if (!a || cudaMallocHost(&p, bytes ? bytes : 1) != cudaSuccess) {
		free(a);
		(void)cudaGetLastError();
		return rv_fail(et, RV_E_NOMEM, "cuda backend: no pinned memory of the host for %zu bytes; use a smaller model",
					   bytes);
	}
	memset(p, 0, bytes);
	*a = (struct cuda_allocation){.base = p, .bytes = bytes, .on_host = true, .next = cu->allocations};
	cu->allocations = a;
	*out = p;
	return RV_OK;
}

/* ---- vectors ---- */

bool cuda_vectors_reserve(struct cuda_backend *cu, const float *p, size_t floats) {
	struct cuda_allocation *a = cuda_allocation_of(cu, p);
	return !a || !a->on_host || floats == 0 || cuda_try_grow(cu, &a->vectors.memory, floats * sizeof(float));
}

void cuda_vectors_release(struct cuda_vectors *v) {
	cuda_check(cudaFree(v->memory.p), "cudaFree");
	free(v->list);
	*v = (struct cuda_vectors){.n = 0};
}

/* Copies the part of a vector that lies in elements [begin, end) of its allocation. */
static void copy_vector(const struct cuda_allocation *a, const struct cuda_vector *v, size_t begin, size_t end,
						cudaStream_t stream) {
	const size_t from = v->begin > begin ? v->begin : begin, to = v->begin + v->n < end ? v->begin + v->n : end;
	if (from < to)
		cuda_check(cudaMemcpyAsync(v->at + (from - v->begin), (const float *)(const void *)a->base + from,
								   (to - from) * sizeof(float), cudaMemcpyHostToDevice, stream),
				   "copy of a vector of weights");
}

void cuda_vectors_update(const struct cuda_allocation *a, size_t begin, size_t end, cudaStream_t stream) {
	for (int i = 0; i < a->vectors.n; i++)
		copy_vector(a, &a->vectors.list[i], begin, end, stream);
}

/* Adds a vector, copied at once on the stream of copies: the computation's may capture. */
static const float *add_vector(struct cuda_backend *cu, struct cuda_allocation *a, size_t begin, size_t n) {
	struct cuda_vectors *v = &a->vectors;
	if (v->n == v->cap) {
		v->cap = v->cap ? 2 * v->cap : FIRST_VECTORS;
		v->list = realloc(v->list, (size_t)v->cap * sizeof *v->list);
		RV_ASSERT(v->list);
	}
	const size_t padded = cuda_vector_floats(n);
	RV_ASSERT((v->used + padded) * sizeof(float) <= v->memory.bytes); /* step_bounds.vectors counts all */
	struct cuda_vector *added = &v->list[v->n++];
	*added = (struct cuda_vector){begin, n, (float *)v->memory.p + v->used};
	v->used += padded;
	copy_vector(a, added, begin, begin + n, cu->micro.copies);
	cuda_check(cudaStreamSynchronize(cu->micro.copies), "cudaStreamSynchronize");
	return added->at;
}

const float *cuda_vector_of_weights(struct cuda_backend *cu, const float *w, size_t n) {
	struct cuda_allocation *a = w ? cuda_allocation_of(cu, w) : NULL;
	if (!a || !a->on_host)
		return w;
	cuda_weights_refresh(cu, w);
	const size_t begin = (size_t)(w - (const float *)(const void *)a->base);
	for (int i = 0; i < a->vectors.n; i++)
		if (a->vectors.list[i].begin == begin && a->vectors.list[i].n == n)
			return a->vectors.list[i].at;
	return add_vector(cu, a, begin, n);
}

/* ---- copies beside the computation ---- */

void cuda_offload_init(struct cuda_backend *cu) {
	cuda_check(cudaStreamCreateWithFlags(&cu->fetching, cudaStreamNonBlocking), "cudaStreamCreate");
	cuda_check(cudaEventCreateWithFlags(&cu->copies_begin, cudaEventDisableTiming), "cudaEventCreate");
	cuda_check(cudaEventCreateWithFlags(&cu->written, cudaEventDisableTiming), "cudaEventCreate");
}

void cuda_begin_copies(struct backend *be) {
	struct cuda_backend *cu = cuda_of(be);
	cuda_check(cudaEventRecord(cu->copies_begin, cu->stream), "cudaEventRecord");
	cuda_check(cudaStreamWaitEvent(cu->fetching, cu->copies_begin, 0), "cudaStreamWaitEvent");
	cuda_check(cudaStreamWaitEvent(cu->micro.copies, cu->copies_begin, 0), "cudaStreamWaitEvent");
}

/* Copies through `room`, so that the bus is the copy engine's and not a kernel's, which would take
 * the processors of the card from the computation for as long. */
void cuda_host_wrote(struct backend *be, const float *p, size_t n, float *room) {
	struct cuda_backend *cu = cuda_of(be);
	cudaStream_t stream = cu->micro.copies;
	const struct cuda_allocation *a = cuda_allocation_of(cu, p);
	RV_ASSERT(a && a->on_host && a->copy);
	const size_t begin = (size_t)(p - (const float *)(const void *)a->base);
	cuda_check(cudaMemcpyAsync(room, p, n * sizeof *p, cudaMemcpyHostToDevice, stream), "copy of weights");
	launch_to_bf16(stream, a->copy + begin, room, n);
	cuda_vectors_update(a, begin, begin + n, stream);
	cuda_check(cudaEventRecord(cu->written, stream), "cudaEventRecord");
	cuda_check(cudaStreamWaitEvent(cu->stream, cu->written, 0), "cudaStreamWaitEvent");
}

bool cuda_fetches_reserve(struct cuda_backend *cu, size_t floats) {
	for (int i = 0; i < FETCHES; i++) {
		struct cuda_fetch_slot *s = &cu->fetches[i];
		void *p = s->pinned;
		const bool ok = cuda_try_grow_pinned(&p, &s->bytes, floats * sizeof(float));
		s->pinned = p;
		if (!ok)
			return false;
		if (!s->done)
			cuda_check(cudaEventCreateWithFlags(&s->done, EVENT_TO_WAIT_FOR), "cudaEventCreate");
	}
	return true;
}

void cuda_fetches_settle(struct cuda_backend *cu) {
	if (cu->fetches_under_way > 0)
		cuda_check(cudaStreamSynchronize(cu->fetching), "cudaStreamSynchronize");
}

void cuda_offload_release(struct cuda_backend *cu) {
	cuda_check(cudaStreamSynchronize(cu->fetching), "cudaStreamSynchronize");
	for (int i = 0; i < FETCHES; i++) {
		cuda_check(cudaFreeHost(cu->fetches[i].pinned), "cudaFreeHost");
		if (cu->fetches[i].done)
			cuda_check(cudaEventDestroy(cu->fetches[i].done), "cudaEventDestroy");
	}
	cuda_check(cudaEventDestroy(cu->copies_begin), "cudaEventDestroy");
	cuda_check(cudaEventDestroy(cu->written), "cudaEventDestroy");
	cuda_check(cudaStreamDestroy(cu->fetching), "cudaStreamDestroy");
}

void cuda_start_fetch(struct backend *be, const float *src, size_t n) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_fetch_slot *s = &cu->fetches[cu->next_fetch % FETCHES];
	RV_ASSERT(cu->fetches_under_way < FETCHES && n * sizeof *src <= s->bytes);
	cuda_use(cu); /* this thread may be another one than the steps' */
	cu->next_fetch++;
	cu->fetches_under_way++;
	cuda_check(cudaMemcpyAsync(s->pinned, src, n * sizeof *src, cudaMemcpyDeviceToHost, cu->fetching),
			   "copy from device");
	cuda_check(cudaEventRecord(s->done, cu->fetching), "cudaEventRecord");
}

const float *cuda_end_fetch(struct backend *be) {
	struct cuda_backend *cu = cuda_of(be);
	RV_ASSERT(cu->fetches_under_way > 0);
	const struct cuda_fetch_slot *s = &cu->fetches[(cu->next_fetch - (unsigned)cu->fetches_under_way) % FETCHES];
	cu->fetches_under_way--;
	cuda_check(cudaEventSynchronize(s->done), "cudaEventSynchronize");
	return s->pinned;
}
