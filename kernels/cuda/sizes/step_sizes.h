/* step_sizes.h: the device memory of a step, counted from its shape: of scratch buffers, of input,
 * and all of it together. Nothing here calls CUDA: programs count with it where there is no
 * plugin. */
#ifndef RV_CUDA_SIZES_STEP_SIZES_H
#define RV_CUDA_SIZES_STEP_SIZES_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CUDA_STAGES = 4,                 /* host arrays on their way to the device at a time (cuda_backend.h) */
	CUDA_INPUTS = 2,                 /* micro-batches whose input is on its way (cuda_micro.h) */
	NORM_THREADS = 256,              /* of a block of norms */
	CUDA_WARP = 32,                  /* threads of a warp */
	SUM_SQUARES_PARTIALS = 1024,     /* sums of launch_sum_squares */
	GEMM_WORKSPACE_BYTES = 64 << 20, /* of cuBLASLt: NVIDIA's advice for sm_90; 32 MiB below */
};

/* Returns the groups of rows of a norm's backward pass, each with one thread's sum of dw: a
 * function of n alone. */
int norm_partial_rows(int n);
size_t norm_backward_scratch_floats(int n, int c);
/* Returns the slabs of rows that column sums are made of: a function of n alone. */
int column_sum_slabs(int n);
size_t column_sum_scratch_floats(int n, int c);

/* A row of logits is padded to whole tiles; a chunk of them has at most `most_rows` (0: any number)
 * but at least a tile: chunks of n rows are equal, and whole tiles if they are several. */
enum { CUDA_LOGITS_TILE = 256, CUDA_LOGITS_ROW_ALIGN = 128 };
size_t cuda_logits_row_bytes(enum dtype act, int vp);
int cuda_logits_rows(int most_rows, int n);
size_t cuda_logits_bytes(enum dtype act, const struct step_bounds *s, int most_rows);

/* Returns the bytes of adamw's spans on their way to the device. */
size_t cuda_spans_bytes(int n_spans);
/* Returns the floats that the copy of a vector of n weights takes. */
size_t cuda_vector_floats(size_t n);
/* Returns the words of an input of n tokens: tokens, their order, targets, grad_scale. The losses
 * are behind them, on the device only. */
size_t cuda_input_words(size_t n);
/* Returns the bytes of pinned memory for the squared norm and the losses of `losses` tokens. */
size_t cuda_fetched_bytes(size_t losses);
/* Return the bytes of device memory, and of pinned memory, of micro-batches of n tokens with
 * `losses` tokens in all of them. */
size_t cuda_micro_bytes(size_t n, size_t losses);

/* Return the bytes of single buffers: partial sums of norms, bias gradients and the gradient's
 * norm; a float for each row, of losses or attention; tokens with their order, or the optimizer's
 * spans; an operand of backend_ops.product. */
size_t cuda_partials_bytes(const struct step_bounds *s);
size_t cuda_rows_bytes(const struct step_bounds *s);
size_t cuda_stage_bytes(const struct step_bounds *s);
size_t cuda_operand_bytes(enum dtype act, const struct step_bounds *s);

/* Counts all of it: backend_ops.step_memory, with a workspace of that size for products. */
void cuda_count_step_memory(enum dtype act, const struct step_bounds *s, size_t workspace_bytes,
							struct step_memory *out);

#ifdef __cplusplus
}
#endif

#endif
