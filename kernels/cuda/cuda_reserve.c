/* cuda_reserve.c: the device memory of a step beside the allocations of alloc (step_sizes.h counts
 * it), allocated before the first step. */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <stdio.h>

/* Memory that stays free when more logits than the least are taken: a driver loads
 * kernels at their first use. */
#define LOGITS_SPARE_BYTES ((size_t)128 << 20)

static size_t tokens_of(const struct step_bounds *s) {
	return (size_t)s->b * (size_t)s->t;
}

void cuda_step_memory(enum dtype act, const struct step_bounds *s, struct step_memory *out) {
	cuda_count_step_memory(act, s, gemm_workspace_bytes(), out);
}

/* ---- taking them ---- */

struct reservation {
	struct cuda_backend *cu;
	const struct step_bounds *s;
	size_t room, copy_bytes; /* before it: free memory, and the size of a copy of the weights */
};

/* Returns the least bytes of a reservation for `s`. */
static size_t least_of(const struct reservation *r, const struct step_bounds *s) {
	struct step_memory m;
	cuda_step_memory(r->cu->base.act, s, &m);
	return step_memory_least(&m) - gemm_workspace_bytes() + r->copy_bytes;
}

/* Returns the largest smaller micro-batch that would have fitted; 0: none. */
static int batch_that_fits(const struct reservation *r) {
	struct step_bounds s = *r->s;
	s.logits_rows = CUDA_LOGITS_TILE;
	do
		s.b--;
	while (s.b > 0 && least_of(r, &s) > r->room);
	return s.b;
}

static size_t free_bytes(size_t *total) {
	size_t available = 0, all = 0;
	(void)cudaMemGetInfo(&available, total ? total : &all);
	return available;
}

static enum rv_err refuse(const struct reservation *r, const char *what, size_t bytes, struct rv_errtext *et) {
	char advice[96] = "stop other users of this GPU, or use a smaller model";
	size_t total = 0;
	const size_t available = free_bytes(&total);
	const int batch = batch_that_fits(r);
	if (batch > 0)
		(void)snprintf(advice, sizeof advice, "a batch of %d would fit", batch);
	return rv_fail(
		et, RV_E_NOMEM,
		"cuda backend: no memory for %s of steps of %d x %d tokens: %zu bytes are needed, %zu of %zu are free; "
		"%s",
		what, r->s->b, r->s->t, bytes, available, total, advice);
}

static enum rv_err take(const struct reservation *r, struct cuda_buffer *b, size_t bytes, const char *what,
						struct rv_errtext *et) {
	return cuda_try_grow(r->cu, b, bytes) ? RV_OK : refuse(r, what, bytes, et);
}

static enum rv_err take_stages(const struct reservation *r, struct rv_errtext *et) {
	const size_t bytes = cuda_stage_bytes(r->s);
	for (int i = 0; i < CUDA_STAGES; i++) {
		struct cuda_stage *stage = &r->cu->stages[i];
		RV_TRY(take(r, &stage->device, bytes, "the input", et));
		if (!cuda_try_grow_pinned(&stage->pinned, &stage->pinned_bytes, bytes))
			return rv_fail(et, RV_E_NOMEM, "cuda backend: no pinned memory of the host (%zu bytes)", bytes);
	}
	return RV_OK;
}

/* Returns the rows of logits for which there is room: as many as were asked for, or fewer whole
 * tiles. */
static int logits_rows_in(const struct reservation *r) {
	const struct cuda_buffer *b = &r->cu->scratch[SCRATCH_LOGITS];
	const enum dtype act = r->cu->base.act;
	const size_t needed = cuda_logits_bytes(act, r->s, r->s->logits_rows);
	const size_t available = free_bytes(NULL) + b->bytes, others = LOGITS_SPARE_BYTES + r->s->exchange;
	const size_t room = available > others ? available - others : 0;
	if (needed <= b->bytes || needed <= room)
		return r->s->logits_rows;
	const int tiles = (int)(room / cuda_logits_row_bytes(act, r->s->vp) / CUDA_LOGITS_TILE);
	return (tiles > 1 ? tiles : 1) * CUDA_LOGITS_TILE;
}

/* Allocates logits of as many rows as there is room for: each chunk reads all of wte and rewrites
 * all of dwte. */
static enum rv_err take_logits(const struct reservation *r, struct step_bounds *s, struct rv_errtext *et) {
	struct cuda_backend *cu = r->cu;
	struct cuda_buffer *b = &cu->scratch[SCRATCH_LOGITS];
	int rows = logits_rows_in(r);
	if (!cuda_try_grow(cu, b, cuda_logits_bytes(cu->base.act, s, rows))) {
		rows = CUDA_LOGITS_TILE;
		RV_TRY(take(r, b, cuda_logits_bytes(cu->base.act, s, rows), "logits", et));
	}
	if (rows != cu->logits_rows)
		cuda_graphs_drop(cu);
	cu->logits_rows = s->logits_rows = rows;
	return RV_OK;
}

static struct attention_shape attention_of(const struct step_bounds *s) {
	return (struct attention_shape){s->b, s->t, s->heads, s->kv_heads, s->head_dim};
}

/* Returns the bytes of bf16 copies that do not exist yet. */
static size_t missing_copies(const struct cuda_backend *cu, const struct step_bounds *s) {
	size_t bytes = 0;
	for (int i = 0; i < WEIGHT_ALLOCATIONS; i++)
		bytes += cuda_weights_missing_bytes(cu, s->params[i]);
	return bytes;
}

static enum rv_err take_copies(const struct reservation *r, struct rv_errtext *et) {
	for (int i = 0; i < WEIGHT_ALLOCATIONS; i++) {
		if (!cuda_weights_reserve(r->cu, r->s->params[i]))
			return refuse(r, "the bf16 copy of the weights", r->copy_bytes, et);
		if (!cuda_vectors_reserve(r->cu, r->s->params[i], r->s->vectors))
			return refuse(r, "vectors of weights", r->s->vectors * sizeof(float), et);
	}
	return RV_OK;
}

enum rv_err cuda_reserve(struct backend *be, struct step_bounds *s, struct rv_errtext *et) {
	struct cuda_backend *cu = cuda_of(be);
	const struct reservation r = {cu, s, free_bytes(NULL), missing_copies(cu, s)};
	const size_t operand = cuda_operand_bytes(be->act, s);
	RV_TRY(take_copies(&r, et));
	if (s->fetched > 0 && !cuda_fetches_reserve(cu, s->fetched))
		return rv_fail(et, RV_E_NOMEM, "cuda backend: no pinned memory of the host (%zu bytes)",
					   s->fetched * sizeof(float));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_PARTIALS], cuda_partials_bytes(s), "partial sums", et));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_ROWS], cuda_rows_bytes(s), "sums of rows", et));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_A], operand, "operands of products", et));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_B], operand, "operands of products", et));
	RV_TRY(take_stages(&r, et));
	if (!cuda_micro_reserve(cu, tokens_of(s), s->losses))
		return refuse(&r, "micro-batches", cuda_micro_bytes(tokens_of(s), s->losses), et);
	RV_TRY(take(&r, &cu->scratch[SCRATCH_LOGITS], cuda_logits_bytes(be->act, s, CUDA_LOGITS_TILE), "logits", et));
	sdpa_reserve(cu->sdpa, attention_of(s));
	return take_logits(&r, s, et);
}
