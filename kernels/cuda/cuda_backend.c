/* cuda_backend.c: opening and closing the CUDA backend, its memory, and its ops table. */
#include "kernels/cuda/cuda_backend.h"

#include "base/assert.h"
#include "kernels/cuda/load_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cuda_check(cudaError_t e, const char *what) {
	if (e == cudaSuccess)
		return;
	(void)fprintf(stderr, "cuda backend: %s: %s\n", what, cudaGetErrorString(e));
	RV_ASSERT(e == cudaSuccess);
}

static bool is_of_captures(cudaError_t e) {
	return e >= cudaErrorStreamCaptureUnsupported && e <= cudaErrorStreamCaptureWrongThread;
}

void cuda_check_enqueued(cudaStream_t stream, cudaError_t e, const char *what) {
	if (!is_of_captures(e) || !cuda_capture_is_spoilt(stream))
		cuda_check(e, what);
}

void cuda_check_launch(cudaStream_t stream, cudaError_t e, const char *kernel) {
	cuda_check_enqueued(stream, e, kernel);
}

void cuda_use(const struct cuda_backend *cu) {
	cuda_check(cudaSetDevice(cu->device), "cudaSetDevice");
}

/* Makes threads that wait for the current device sleep instead of spin, whatever they wait for but
 * an event: those have flags of their own, as EVENT_TO_WAIT_FOR. A person uses the processors. */
static cudaError_t cuda_wait_asleep(void) {
	return cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
}

static void free_buffer(struct cuda_buffer *b) {
	cuda_check(cudaFree(b->p), "cudaFree");
	*b = (struct cuda_buffer){0};
}

/* Grows the buffer, after waiting for its users. */
static cudaError_t try_grow(struct cuda_buffer *b, size_t bytes) {
	if (bytes <= b->bytes)
		return cudaSuccess;
	free_buffer(b);
	cudaError_t e = cudaMalloc(&b->p, bytes);
	if (e == cudaSuccess) {
		b->bytes = bytes;
		return e;
	}
	(void)cudaGetLastError();
	b->p = NULL;
	return e;
}

bool cuda_try_grow(struct cuda_backend *cu, struct cuda_buffer *b, size_t bytes) {
	if (bytes > b->bytes)
		cuda_graphs_drop(cu);
	return try_grow(b, bytes) == cudaSuccess;
}

bool cuda_try_grow_pinned(void **p, size_t *have, size_t bytes) {
	if (bytes <= *have)
		return true;
	cuda_check(cudaFreeHost(*p), "cudaFreeHost");
	*have = 0;
	if (cudaMallocHost(p, bytes) == cudaSuccess) {
		*have = bytes;
		return true;
	}
	(void)cudaGetLastError();
	*p = NULL;
	return false;
}

void cuda_grow(struct cuda_buffer *b, size_t bytes) {
	cudaError_t e = try_grow(b, bytes);
	if (e != cudaSuccess) {
		size_t available = 0, total = 0;
		(void)cudaMemGetInfo(&available, &total);
		(void)fprintf(stderr,
					  "cuda backend: no memory for %zu bytes of scratch: %zu of %zu are free; stop other users of this "
					  "GPU, or use a smaller batch or --recompute block\n",
					  bytes, available, total);
	}
	cuda_check(e, "cudaMalloc of scratch memory");
}

void cuda_grow_captured(struct cuda_backend *cu, struct cuda_buffer *b, size_t bytes) {
	if (bytes <= b->bytes)
		return;
	if (cuda_captures(cu->stream)) {
		cuda_capture_unfit(cu, "it needs more scratch memory");
		return;
	}
	cuda_graphs_drop(cu);
	cuda_grow(b, bytes);
}

void cuda_gemm(struct cuda_backend *cu, const struct gemm_call *call) {
	if (!gemm_run(cu->gemm, cu->stream, call))
		cuda_capture_unfit(cu, "a product in it has no algorithm yet, or none that can be captured");
}

void *cuda_scratch(struct cuda_backend *cu, enum cuda_scratch which, size_t bytes) {
	cuda_grow_captured(cu, &cu->scratch[which], bytes);
	return cu->scratch[which].p;
}

const void *cuda_stage_in(struct cuda_backend *cu, const void *host, size_t bytes) {
	struct cuda_stage *s = &cu->stages[cu->next_stage];
	cu->next_stage = (cu->next_stage + 1) % CUDA_STAGES;
	cuda_check(cudaEventSynchronize(s->copied), "cudaEventSynchronize");
	if (bytes > s->pinned_bytes) {
		cuda_check(cudaFreeHost(s->pinned), "cudaFreeHost");
		cuda_check(cudaMallocHost(&s->pinned, bytes), "cudaMallocHost");
		s->pinned_bytes = bytes;
	}
	cuda_grow(&s->device, bytes);
	if (bytes)
		memcpy(s->pinned, host, bytes);
	cuda_check_enqueued(cu->stream, cudaMemcpyAsync(s->device.p, s->pinned, bytes, cudaMemcpyHostToDevice, cu->stream),
						"copy to device");
	cuda_check_enqueued(cu->stream, cudaEventRecord(s->copied, cu->stream), "cudaEventRecord");
	return s->device.p;
}

void cuda_fetch(struct cuda_backend *cu, void *host, const void *device, size_t bytes) {
	cuda_check_enqueued(cu->stream, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cu->stream),
						"copy from device");
	cuda_check_enqueued(cu->stream, cudaStreamSynchronize(cu->stream), "cudaStreamSynchronize");
}

static enum rv_err cuda_alloc(struct backend *be, size_t bytes, void **out, struct rv_errtext *et) {
	struct cuda_backend *cu = cuda_of(be);
	*out = NULL;
	struct cuda_allocation *a = calloc(1, sizeof *a);
	void *p = NULL;
	if (!a || cudaMalloc(&p, bytes ? bytes : 1) != cudaSuccess) {
		free(a);
		size_t available = 0, total = 0;
		(void)cudaGetLastError(); /* the next launch must not report it */
		(void)cudaMemGetInfo(&available, &total);
		return rv_fail(et, RV_E_NOMEM,
					   "cuda backend: no memory for %zu bytes: %zu of %zu are free; use a smaller model or batch",
					   bytes, available, total);
	}
	*a = (struct cuda_allocation){.base = p, .bytes = bytes, .next = cu->allocations};
	cu->allocations = a;
	be->ops->zero(be, p, bytes);
	*out = p;
	return RV_OK;
}

static void cuda_free(struct backend *be, void *p) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_allocation **at = &cu->allocations;
	while (*at && (*at)->base != p)
		at = &(*at)->next;
	RV_ASSERT(!p || *at);
	if (!p)
		return;
	cuda_graphs_drop(cu);
	cuda_fetches_settle(cu);
	struct cuda_allocation *a = *at;
	*at = a->next;
	if (a->on_host)
		cuda_check(cudaFreeHost(a->base), "cudaFreeHost");
	else
		cuda_check(cudaFree(a->base), "cudaFree");
	cuda_check(cudaFree(a->copy), "cudaFree");
	cuda_vectors_release(&a->vectors);
	free(a);
}

static void cuda_sync(struct backend *be) {
	struct cuda_backend *cu = cuda_of(be);
	cuda_check_enqueued(cu->stream, cudaStreamSynchronize(cu->stream), "cudaStreamSynchronize");
}

/* Returns true if p is memory of the host, after a wait for all who use it. */
static bool is_on_host(struct cuda_backend *cu, const void *p) {
	const struct cuda_allocation *a = cuda_allocation_of(cu, p);
	if (a && a->on_host)
		cuda_sync(&cu->base);
	return a && a->on_host;
}

static void cuda_upload(struct backend *be, void *dst, const void *host, size_t bytes) {
	struct cuda_backend *cu = cuda_of(be);
	if (bytes && is_on_host(cu, dst)) {
		memcpy(dst, host, bytes);
		cuda_weights_changed(cu, dst, bytes);
		return;
	}
	cuda_check_enqueued(cu->stream, cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, cu->stream),
						"copy to device");
	cuda_weights_changed(cu, dst, bytes);
	cuda_check_enqueued(cu->stream, cudaStreamSynchronize(cu->stream), "cudaStreamSynchronize");
}

static void cuda_download(struct backend *be, void *host, const void *src, size_t bytes) {
	struct cuda_backend *cu = cuda_of(be);
	if (bytes && is_on_host(cu, src))
		memcpy(host, src, bytes);
	else
		cuda_fetch(cu, host, src, bytes);
}

static void cuda_zero(struct backend *be, void *p, size_t bytes) {
	struct cuda_backend *cu = cuda_of(be);
	if (bytes && is_on_host(cu, p))
		memset(p, 0, bytes);
	else
		cuda_check_enqueued(cu->stream, cudaMemsetAsync(p, 0, bytes, cu->stream), "cudaMemsetAsync");
	cuda_weights_changed(cu, p, bytes);
}

static const char *cuda_describe(const struct backend *be) {
	return ((const struct cuda_backend *)be)->description;
}

static void cuda_close(struct backend *be) {
	struct cuda_backend *cu = cuda_of(be);
	const int device = cu->device;
	cuda_use(cu); /* this thread may have used another one since */
	cuda_sync(be);
	while (cu->allocations)
		cuda_free(be, cu->allocations->base);
	for (int i = 0; i < SCRATCH_N; i++)
		free_buffer(&cu->scratch[i]);
	for (int i = 0; i < CUDA_STAGES; i++) {
		free_buffer(&cu->stages[i].device);
		cuda_check(cudaFreeHost(cu->stages[i].pinned), "cudaFreeHost");
		cuda_check(cudaEventDestroy(cu->stages[i].copied), "cudaEventDestroy");
	}
	cuda_offload_release(cu);
	cuda_micro_release(cu);
	cuda_outer_release(&cu->outer);
	sdpa_close(cu->sdpa);
	gemm_close(cu->gemm);
	cuda_check(cudaStreamDestroy(cu->stream), "cudaStreamDestroy");
	free(cu);
	cuda_let_go_device(device);
}

/* Makes streams and events, which only fail on a broken device. */
static void make_streams(struct cuda_backend *cu) {
	cuda_check(cudaStreamCreateWithFlags(&cu->stream, cudaStreamNonBlocking), "cudaStreamCreate");
	cuda_micro_init(&cu->micro);
	cuda_offload_init(cu);
	for (int i = 0; i < CUDA_STAGES; i++)
		cuda_check(cudaEventCreateWithFlags(&cu->stages[i].copied, EVENT_TO_WAIT_FOR), "cudaEventCreate");
}

static void describe(struct cuda_backend *cu, const struct cudaDeviceProp *prop) {
	char why[160] = "fp32"; /* cuDNN's fused attention is for bf16 */
	if (cu->base.act == DTYPE_BF16)
		cu->sdpa = sdpa_open(10 * prop->major + prop->minor, why, sizeof why);
	(void)snprintf(cu->description, sizeof cu->description, "cuda:%d %.64s (sm_%d%d, %zu GiB), %s, attention: %s%s%s",
				   cu->device, prop->name, prop->major, prop->minor, prop->totalGlobalMem >> 30,
				   cu->base.act == DTYPE_BF16 ? "bf16" : "fp32", cu->sdpa ? "cuDNN" : "own (", cu->sdpa ? "" : why,
				   cu->sdpa ? "" : ")");
}

/* Opens a device that is held; after a fault its caller lets it go. */
static enum rv_err open_held(const struct backend_options *opt, int device, struct backend **out,
							 struct rv_errtext *et) {
	RV_TRY(cuda_load_code(device, et));
	struct cudaDeviceProp prop;
	cudaError_t e = cudaSetDevice(device);
	if (e == cudaSuccess)
		e = cuda_wait_asleep();
	if (e == cudaSuccess)
		e = cudaGetDeviceProperties(&prop, device);
	if (e != cudaSuccess)
		return rv_fail(et, RV_E_UNSUPPORTED, "cuda backend: device %d: %s", device, cudaGetErrorString(e));
	struct cuda_backend *cu = calloc(1, sizeof *cu);
	if (!cu)
		return rv_fail(et, RV_E_NOMEM, "cuda backend: no memory for its handle");
	cu->base = (struct backend){.ops = &cuda_ops, .act = opt->compute, .threads = 1};
	cu->device = device;
	make_streams(cu);
	describe(cu, &prop);
	enum rv_err err = gemm_open(&cu->gemm, et);
	if (err) {
		cuda_hold_device(device); /* it is the caller's to let go */
		cuda_close(&cu->base);
		return err;
	}
	*out = &cu->base;
	return RV_OK;
}

static enum rv_err cuda_open(const struct backend_options *opt, struct backend **out, struct rv_errtext *et) {
	*out = NULL;
	int devices = 0, device = opt->device;
	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1)
		return rv_fail(et, RV_E_UNSUPPORTED, "cuda backend: no CUDA device; use --device cpu");
	if (device < 0 || device >= devices)
		return rv_fail(et, RV_E_RANGE, "cuda backend: device %d: the machine has %d, counted from 0", device, devices);
	cuda_hold_device(device);
	const enum rv_err e = open_held(opt, device, out, et);
	if (e != RV_OK)
		cuda_let_go_device(device);
	return e;
}

const struct backend_ops cuda_ops = {.name = "cuda",
									 .open = cuda_open,
									 .close = cuda_close,
									 .describe = cuda_describe,
									 .alloc = cuda_alloc,
									 .free = cuda_free,
									 .upload = cuda_upload,
									 .download = cuda_download,
									 .zero = cuda_zero,
									 .sync = cuda_sync,
									 .alloc_on_host = cuda_alloc_on_host,
									 .begin_copies = cuda_begin_copies,
									 .host_wrote = cuda_host_wrote,
									 .start_fetch = cuda_start_fetch,
									 .end_fetch = cuda_end_fetch,
									 .step_memory = cuda_step_memory,
									 .reserve = cuda_reserve,
									 .micro_step = cuda_micro_step,
									 .micro_prepare = cuda_micro_prepare,
									 .micro_pace = cuda_micro_pace,
									 .micro_losses = cuda_micro_losses,
									 COMPUTING_OPS(OP_ENTRY, cuda)};
