/* cuda_backend.h: the CUDA backend's own struct and helpers that its files share: scratch, staging
 * of host arrays, and bf16 copies of weights. One stream does everything; the host waits only for
 * operations that return a value to it (kernels/backend.h). */
#ifndef RV_CUDA_BACKEND_H
#define RV_CUDA_BACKEND_H

#include "kernels/backend.h"
#include "kernels/computing_ops.h"
#include "kernels/cuda/cuda_micro.h"
#include "kernels/cuda/cuda_outer.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/sdpa.h"
#include "kernels/cuda/sizes/step_sizes.h"
#include "kernels/cuda/vendor/runtime.h"

enum { CUDA_DESCRIPTION_BYTES = 400 };

/* The fp32 copies of vectors of weights that are in the host's memory (cuda_offload.c), found by
 * their place in it. */
struct cuda_vector {
	size_t begin, n; /* elements of the allocation */
	float *at;       /* in `memory` */
};
struct cuda_vectors {
	struct cuda_buffer memory;
	size_t used; /* floats of it */
	struct cuda_vector *list;
	int n, cap;
};

/* An allocation of alloc, or of alloc_on_host. The bf16 copy of its floats exists once a product
 * has used some of them as a weight; elements [stale_begin, stale_end) of it are out of date. */
struct cuda_allocation {
	char *base;
	size_t bytes;
	bool on_host; /* pinned memory, which the device reads over the bus */
	struct cuda_vectors vectors;
	uint16_t *copy; /* NULL: none yet */
	size_t stale_begin, stale_end;
	struct cuda_allocation *next;
};

/* A host array on its way to the device: pinned host memory, and its destination. */
struct cuda_stage {
	void *pinned;
	size_t pinned_bytes;
	struct cuda_buffer device;
	cudaEvent_t copied; /* until then `pinned` must not change */
};

/* A copy to the host under way (start_fetch). */
struct cuda_fetch_slot {
	float *pinned;
	size_t bytes;
	cudaEvent_t done; /* NULL: not reserved */
};

/* Uses of scratch buffers: no operation uses one twice. */
enum cuda_scratch { SCRATCH_PARTIALS, SCRATCH_LOGITS, SCRATCH_ROWS, SCRATCH_A, SCRATCH_B, SCRATCH_N };

struct cuda_backend {
	struct backend base;
	int device;
	char description[CUDA_DESCRIPTION_BYTES];
	cudaStream_t stream;
	struct gemm *gemm;
	struct cuda_allocation *allocations;
	struct cuda_buffer scratch[SCRATCH_N];
	struct cuda_stage stages[CUDA_STAGES];
	int next_stage;
	struct cuda_fetch_slot fetches[FETCHES];
	unsigned next_fetch;
	int fetches_under_way;
	cudaStream_t fetching;             /* copies to the host; those to the device are on micro.copies */
	cudaEvent_t copies_begin, written; /* begin_copies; the last host_wrote */
	struct cuda_outer outer;           /* cuda_outer.c */
	struct cuda_micro micro;           /* cuda_micro.c */
	struct sdpa *sdpa;                 /* attention by cuDNN; NULL: by our own kernels */
	int logits_rows;                   /* most rows of logits at a time; 0: all */
};

/* Makes its device current for the calling thread: a backend may be opened on one thread and driven
 * on another. */
void cuda_use(const struct cuda_backend *cu);

/* Flags of an event for which the host waits. */
#define EVENT_TO_WAIT_FOR (cudaEventDisableTiming | cudaEventBlockingSync)

static inline struct cuda_backend *cuda_of(struct backend *be) {
	struct cuda_backend *cu = (struct cuda_backend *)be;
	cuda_use(cu);
	return cu;
}

/* Asserts success of a call that fails only by a bug or a broken device. `what` names the call. */
void cuda_check(cudaError_t e, const char *what);
/* Asserts the same for work enqueued on `stream`, or a wait for it. A spoilt capture of that stream
 * refuses all work, which is reported where the capture ends and is no fault before. */
void cuda_check_enqueued(cudaStream_t stream, cudaError_t e, const char *what);
void cuda_check_launch(cudaStream_t stream, cudaError_t e, const char *kernel);

/* Grows a buffer to at least `bytes`; false: there is no memory, and the buffer is empty. Drops
 * graphs that may hold its address. The second is for pinned memory of the host. */
bool cuda_try_grow(struct cuda_backend *cu, struct cuda_buffer *b, size_t bytes);
bool cuda_try_grow_pinned(void **p, size_t *have, size_t bytes);
/* Grows a buffer to at least `bytes`, or ends the process. The second is for buffers whose address
 * is in graphs: moving one drops them. While the stream captures it does not move, and the capture
 * becomes unfit instead, so that reads beyond its end never run. */
void cuda_grow(struct cuda_buffer *b, size_t bytes);
void cuda_grow_captured(struct cuda_backend *cu, struct cuda_buffer *b, size_t bytes);
void *cuda_scratch(struct cuda_backend *cu, enum cuda_scratch which, size_t bytes);
/* Enqueues a product. While the stream captures, a product without an algorithm makes the capture
 * unfit instead. */
void cuda_gemm(struct cuda_backend *cu, const struct gemm_call *call);
/* Copies a host array to the device, in stream order; `host` may change when this returns. The
 * result lasts until CUDA_STAGES - 1 more calls. */
const void *cuda_stage_in(struct cuda_backend *cu, const void *host, size_t bytes);
/* Copies to the host and waits. */
void cuda_fetch(struct cuda_backend *cu, void *host, const void *device, size_t bytes);

/* cuda_offload.c */
enum rv_err cuda_alloc_on_host(struct backend *be, size_t bytes, void **out, struct rv_errtext *et);
void cuda_begin_copies(struct backend *be);
void cuda_host_wrote(struct backend *be, const float *p, size_t n, float *room);
void cuda_start_fetch(struct backend *be, const float *src, size_t n);
const float *cuda_end_fetch(struct backend *be);
/* Makes room for `floats` of copies of vectors, if p's allocation is on the host; false: there is
 * no memory. */
bool cuda_vectors_reserve(struct cuda_backend *cu, const float *p, size_t floats);
void cuda_vectors_release(struct cuda_vectors *v);
/* Enqueues copies of what changed in elements [begin, end). */
void cuda_vectors_update(const struct cuda_allocation *a, size_t begin, size_t end, cudaStream_t stream);
/* Returns n floats at w for kernels that read all of them often: themselves, or of weights on the
 * host the device's copy, brought up to date. NULL for NULL. */
const float *cuda_vector_of_weights(struct cuda_backend *cu, const float *w, size_t n);
/* Makes room for copies to the host of `floats`; false: there is no pinned memory. */
bool cuda_fetches_reserve(struct cuda_backend *cu, size_t floats);
/* Make and destroy the stream and the events of these copies. */
void cuda_offload_init(struct cuda_backend *cu);
/* Waits for fetches that nobody took, before what they read is freed. */
void cuda_fetches_settle(struct cuda_backend *cu);
void cuda_offload_release(struct cuda_backend *cu);

/* cuda_weights.c */
/* Returns the allocation that p points into; NULL: none. */
struct cuda_allocation *cuda_allocation_of(const struct cuda_backend *cu, const void *p);
/* Returns n floats at w as operands of products: themselves, or with bf16 activations the bf16
 * copy, brought up to date. */
const void *cuda_weights(struct cuda_backend *cu, const float *w, size_t n);
/* Marks the copy of the floats at p, if there is one, as stale. */
void cuda_weights_changed(struct cuda_backend *cu, const void *p, size_t bytes);
/* Returns the copy of n floats at p that an operation will overwrite completely, or NULL if there
 * is none. */
void *cuda_weights_overwritten(struct cuda_backend *cu, const float *p, size_t n);
/* Makes the copy of p's allocation for products to read; false: there is no memory. */
bool cuda_weights_reserve(struct cuda_backend *cu, const float *p);
/* Returns the bytes of that copy while it does not exist; 0 for NULL. */
size_t cuda_weights_missing_bytes(const struct cuda_backend *cu, const float *p);
/* Brings the copy of p's whole allocation up to date, if there is one; the second marks all of it
 * as stale. */
void cuda_weights_refresh(struct cuda_backend *cu, const float *p);
void cuda_weights_all_changed(struct cuda_backend *cu, const float *p);

/* cuda_tokens.c */
/* Writes to out (3 n + 1): tokens, rows sorted by token, and the first row of each distinct token;
 * n from there on. Returns the number of distinct tokens. */
int cuda_sort_tokens(int32_t *out, const int32_t *tokens, int n);
/* cuda_reserve.c */
void cuda_step_memory(enum dtype act, const struct step_bounds *s, struct step_memory *out);
enum rv_err cuda_reserve(struct backend *be, struct step_bounds *s, struct rv_errtext *et);

/* cuda_ops.c */
/* Enqueues the sum of squares of x (n). Returns where it will be, on the device. */
const double *cuda_enqueue_squares(struct cuda_backend *cu, const float *x, size_t n);

/* cuda_micro.c */
void cuda_micro_step(struct backend *be, const struct micro_batch *batch, void (*pass)(void *ctx), void *ctx);
void cuda_micro_prepare(struct backend *be, const struct micro_batch *batch);
void cuda_micro_pace(struct backend *be);
const float *cuda_micro_losses(struct backend *be, size_t *n, const float *x, size_t x_n, double *squares);

COMPUTING_OPS(OP_PROTOTYPE, cuda)
extern const struct backend_ops cuda_ops;

#endif
