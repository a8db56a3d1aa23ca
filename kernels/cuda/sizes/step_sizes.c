/* step_sizes.c: counts the device memory of a step. The sizes are those that the operations
 * request: one with a new or larger buffer must be added here. */
#include "kernels/cuda/sizes/step_sizes.h"

/* cuDNN's workspace is known when its plan is made. Seen (cuDNN 9.19): none on sm_90, this on
 * sm_86, 89 and 120; where several heads read one key, also their gradients of keys and values in
 * bf16. */
#define ATTENTION_WORKSPACE_BYTES ((size_t)50 << 20)
enum {
	ATTENTION_LIBRARY_HEAD_DIM_MAX = 128,
	LOGITS_MODEST_BYTES = 256 << 20, /* larger logits leave room for what makes steps faster */
	NORM_PARTIALS = 1024,
	NORM_PARTIAL_ROWS = 8,
	COLUMN_SLABS = 64,
	COLUMN_SLAB_ROWS = 64,
	VECTOR_ALIGN_FLOATS = 16 /* of the copy of a vector of weights: 64 bytes */
};

static size_t larger(size_t a, size_t b) {
	return a > b ? a : b;
}

static size_t tokens_of(const struct step_bounds *s) {
	return (size_t)s->b * (size_t)s->t;
}

/* ---- sums ---- */

/* Returns n rows in groups of `size`, at most `most` groups. */
static int groups_of(int n, int size, int most) {
	const int groups = (n + size - 1) / size;
	return groups < most ? groups : most;
}

int norm_partial_rows(int n) {
	return groups_of(n, NORM_PARTIAL_ROWS, NORM_PARTIALS);
}

size_t norm_backward_scratch_floats(int n, int c) {
	return (size_t)(norm_partial_rows(n) + NORM_THREADS / CUDA_WARP) * 2 * (size_t)c;
}

int column_sum_slabs(int n) {
	return groups_of(n, COLUMN_SLAB_ROWS, COLUMN_SLABS);
}

size_t column_sum_scratch_floats(int n, int c) {
	return (size_t)column_sum_slabs(n) * (size_t)c;
}

size_t cuda_partials_bytes(const struct step_bounds *s) {
	const int n = (int)tokens_of(s);
	const size_t norms = norm_backward_scratch_floats(n, s->c), columns = column_sum_scratch_floats(n, s->widest);
	return larger(larger(norms, columns) * sizeof(float), (SUM_SQUARES_PARTIALS + 1) * sizeof(double));
}

size_t cuda_rows_bytes(const struct step_bounds *s) {
	return tokens_of(s) * larger(1, (size_t)s->heads) * sizeof(float);
}

/* ---- logits ---- */

size_t cuda_logits_row_bytes(enum dtype act, int vp) {
	const int ld = (vp + CUDA_LOGITS_ROW_ALIGN - 1) / CUDA_LOGITS_ROW_ALIGN * CUDA_LOGITS_ROW_ALIGN;
	return (size_t)ld * dtype_bytes(act);
}

int cuda_logits_rows(int most_rows, int n) {
	const int tile = CUDA_LOGITS_TILE;
	if (most_rows == 0 || most_rows >= n)
		return n;
	const int most = most_rows < tile ? tile : most_rows / tile * tile, chunks = (n + most - 1) / most;
	const int even = (n + chunks - 1) / chunks;
	return chunks == 1 ? n : (even + tile - 1) / tile * tile;
}

size_t cuda_logits_bytes(enum dtype act, const struct step_bounds *s, int most_rows) {
	return (size_t)cuda_logits_rows(most_rows, (int)tokens_of(s)) * cuda_logits_row_bytes(act, s->vp);
}

/* ---- input ---- */

size_t cuda_spans_bytes(int n_spans) {
	return (size_t)n_spans * (sizeof(size_t) + 1); /* ends, then whether they decay */
}

size_t cuda_vector_floats(size_t n) {
	return (n + VECTOR_ALIGN_FLOATS - 1) / VECTOR_ALIGN_FLOATS * VECTOR_ALIGN_FLOATS;
}

size_t cuda_input_words(size_t n) {
	return n + (2 * n + 1) + n + 1;
}

size_t cuda_fetched_bytes(size_t losses) {
	return sizeof(double) + losses * sizeof(float);
}

size_t cuda_micro_bytes(size_t n, size_t losses) {
	return (CUDA_INPUTS + 1) * cuda_input_words(n) * sizeof(int32_t) + n * sizeof(float) + losses * sizeof(float);
}

static size_t cuda_micro_pinned_bytes(size_t n, size_t losses) {
	return CUDA_INPUTS * cuda_input_words(n) * sizeof(int32_t) + cuda_fetched_bytes(losses);
}

size_t cuda_stage_bytes(const struct step_bounds *s) {
	return larger((3 * tokens_of(s) + 1) * sizeof(int32_t), cuda_spans_bytes(s->n_spans));
}

size_t cuda_operand_bytes(enum dtype act, const struct step_bounds *s) {
	return act == DTYPE_F32 ? 0 : s->operand * dtype_bytes(DTYPE_BF16);
}

/* ---- all ---- */

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

void cuda_count_step_memory(enum dtype act, const struct step_bounds *s, size_t workspace_bytes,
							struct step_memory *out) {
	const size_t sums = cuda_partials_bytes(s) + cuda_rows_bytes(s), stages = CUDA_STAGES * cuda_stage_bytes(s);
	const size_t input = cuda_micro_bytes(tokens_of(s), s->losses) + stages;
	const size_t products = workspace_bytes + 2 * cuda_operand_bytes(act, s);
	const size_t logits = cuda_logits_bytes(act, s, s->logits_rows);
	const size_t trials = trial_bytes(s), attention = attention_bytes(act, s);
	const bool is_large = logits > LOGITS_MODEST_BYTES;
	*out = (struct step_memory){.pinned_bytes = cuda_micro_pinned_bytes(tokens_of(s), s->losses) + stages +
												FETCHES * s->fetched * sizeof(float)};
	step_memory_add(out, "logits", logits, logits);
	step_memory_add(out, "products", products, products);
	step_memory_add(out, "trials", trials, is_large ? trials : 0);
	step_memory_add(out, "attention", attention, is_large ? attention : 0);
	step_memory_add(out, "partial sums", sums, sums);
	step_memory_add(out, "input and losses", input, input);
	step_memory_add(out, "vectors", s->vectors * sizeof(float), s->vectors * sizeof(float));
}
