/* cuda_reserve.c: the device memory of a step beside the allocations of alloc: counted
 * (cuda_step_memory), and allocated before the first step (cuda_reserve). The sizes are those that
 * the operations request: one with a new or larger buffer must be added here. */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <stdio.h>

/* Memory that stays free when a chunk of logits larger than the least is chosen: a driver loads
 * kernels at their first use. */
#define LOGITS_SPARE_BYTES ((size_t)128 << 20)
/* cuDNN's workspace is known when its plan is made. Seen (cuDNN 9.19): none on sm_90, this on
 * sm_86, 89 and 120; where several heads read one key, also their gradients of keys and values in
 * bf16. */
#define ATTENTION_WORKSPACE_BYTES ((size_t)50 << 20)
enum { ATTENTION_LIBRARY_HEAD_DIM_MAX = 128, LOGITS_LEAST_ROWS = CUDA_LOGITS_TILE };

static size_t larger(size_t a, size_t b) {
	return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b) {
	return a < b ? a : b;
}

static size_t tokens_of(const struct step_bounds *s) {
	return (size_t)s->b * (size_t)s->t;
}

/* ---- sizes ---- */

/* Returns the bytes of partial sums of norms, bias gradients and the gradient's norm. */
static size_t partials_bytes(const struct step_bounds *s) {
	const int n = (int)tokens_of(s);
	size_t norms = norm_backward_scratch_floats(n, s->c), columns = column_sum_scratch_floats(n, s->widest);
	return larger(larger(norms, columns) * sizeof(float), (SUM_SQUARES_PARTIALS + 1) * sizeof(double));
}

/* Returns the bytes of a float for each row: losses, or attention's. */
static size_t rows_bytes(const struct step_bounds *s) {
	return tokens_of(s) * (size_t)larger(1, (size_t)s->heads) * sizeof(float);
}

/* Returns the bytes of tokens with their order, or of the optimizer's spans. */
static size_t stage_bytes(const struct step_bounds *s) {
	return larger((3 * tokens_of(s) + 1) * sizeof(int32_t), cuda_spans_bytes(s->n_spans));
}

static size_t operand_bytes(enum dtype act, const struct step_bounds *s) {
	return act == DTYPE_F32 ? 0 : s->operand * dtype_bytes(DTYPE_BF16);
}

static size_t logits_bytes(enum dtype act, const struct step_bounds *s, size_t chunk_bytes) {
	const size_t row = cuda_logits_row_bytes(act, s->vp);
	return (size_t)cuda_logits_rows(chunk_bytes, row, (int)tokens_of(s)) * row;
}

static size_t least_logits_bytes(enum dtype act, const struct step_bounds *s) {
	return logits_bytes(act, s, LOGITS_LEAST_ROWS * cuda_logits_row_bytes(act, s->vp));
}

/* Returns the bytes that cuDNN's fused attention needs, if it is available. */
static size_t attention_bytes(enum dtype act, const struct step_bounds *s) {
	const size_t rows = tokens_of(s) * (size_t)s->heads, elems = rows * (size_t)s->head_dim;
	if (act == DTYPE_F32 || s->head_dim > ATTENTION_LIBRARY_HEAD_DIM_MAX)
		return 0;
	const size_t grouped = s->kv_heads < s->heads ? 2 * elems * dtype_bytes(act) : 0;
	return (rows + elems) * sizeof(float) + ATTENTION_WORKSPACE_BYTES + grouped;
}

/* Returns the bytes used briefly in the first step, if there is room: the result of the largest
 * product that adds to one, the classifier's weight gradient, for trials of algorithms; less, to
 * compare cuDNN's first results with ours. */
static size_t trial_bytes(const struct step_bounds *s) {
	return (size_t)s->vp * (size_t)s->c * sizeof(float);
}

void cuda_step_memory(enum dtype act, const struct step_bounds *s, struct step_memory *out) {
	const size_t sums = partials_bytes(s) + rows_bytes(s), stages = CUDA_STAGES * stage_bytes(s);
	const size_t input = cuda_micro_bytes(tokens_of(s), s->losses) + stages;
	const size_t operands = 2 * operand_bytes(act, s), products = gemm_workspace_bytes();
	*out = (struct step_memory){.pinned_bytes = cuda_micro_pinned_bytes(tokens_of(s), s->losses) + stages};
	step_memory_add(out, "logits", logits_bytes(act, s, CUDA_LOGITS_CHUNK_BYTES), least_logits_bytes(act, s));
	step_memory_add(out, "products", products + operands, products + operands);
	step_memory_add(out, "trials", trial_bytes(s), 0);
	step_memory_add(out, "attention", attention_bytes(act, s), 0);
	step_memory_add(out, "partial sums", sums, sums);
	step_memory_add(out, "input and losses", input, input);
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
	const size_t bytes = stage_bytes(r->s);
	for (int i = 0; i < CUDA_STAGES; i++) {
		struct cuda_stage *stage = &r->cu->stages[i];
		RV_TRY(take(r, &stage->device, bytes, "the input", et));
		if (!cuda_try_grow_pinned(&stage->pinned, &stage->pinned_bytes, bytes))
			return rv_fail(et, RV_E_NOMEM, "cuda backend: no pinned memory of the host (%zu bytes)", bytes);
	}
	return RV_OK;
}

/* Allocates as much as there is room for, up to CUDA_LOGITS_CHUNK_BYTES: each chunk reads all of
 * wte and rewrites all of dwte. */
static enum rv_err take_logits(const struct reservation *r, struct rv_errtext *et) {
	struct cuda_backend *cu = r->cu;
	struct cuda_buffer *b = &cu->scratch[SCRATCH_LOGITS];
	const enum dtype act = cu->base.act;
	const size_t least = least_logits_bytes(act, r->s), available = free_bytes(NULL) + b->bytes;
	const size_t room = available > LOGITS_SPARE_BYTES ? available - LOGITS_SPARE_BYTES : 0;
	size_t bytes = logits_bytes(act, r->s, larger(least, smaller(room, CUDA_LOGITS_CHUNK_BYTES)));
	if (!cuda_try_grow(cu, b, bytes))
		RV_TRY(take(r, b, bytes = least, "logits", et));
	cu->logits_chunk_bytes = larger(b->bytes, cuda_logits_row_bytes(act, r->s->vp));
	return RV_OK;
}

static struct attention_shape attention_of(const struct step_bounds *s) {
	return (struct attention_shape){s->b, s->t, s->heads, s->kv_heads, s->head_dim};
}

enum rv_err cuda_reserve(struct backend *be, const struct step_bounds *s, struct rv_errtext *et) {
	struct cuda_backend *cu = cuda_of(be);
	const struct reservation r = {cu, s, free_bytes(NULL), cuda_weights_missing_bytes(cu, s->params)};
	const size_t operand = operand_bytes(be->act, s);
	if (!cuda_weights_reserve(cu, s->params))
		return refuse(&r, "the bf16 copy of the weights", r.copy_bytes, et);
	RV_TRY(take(&r, &cu->scratch[SCRATCH_PARTIALS], partials_bytes(s), "partial sums", et));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_ROWS], rows_bytes(s), "sums of rows", et));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_A], operand, "operands of products", et));
	RV_TRY(take(&r, &cu->scratch[SCRATCH_B], operand, "operands of products", et));
	RV_TRY(take_stages(&r, et));
	if (!cuda_micro_reserve(cu, tokens_of(s), s->losses))
		return refuse(&r, "micro-batches", cuda_micro_bytes(tokens_of(s), s->losses), et);
	RV_TRY(take(&r, &cu->scratch[SCRATCH_LOGITS], least_logits_bytes(be->act, s), "logits", et));
	sdpa_reserve(cu->sdpa, attention_of(s));
	return take_logits(&r, et);
}
