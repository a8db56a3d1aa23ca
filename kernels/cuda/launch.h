/* launch.h: the kernels, as calls from C: each enqueues on `stream` and returns. Pointers are
 * device memory unless documented otherwise; shapes and meaning are those of the operation of the
 * same name in kernels/backend.h. `act` is the type of every act_t. The caller owns scratch memory;
 * its contents matter only to the call.
 *
 * Every kernel gives the same bits for the same inputs: no floating-point atomics, and no sum whose
 * order depends on the number of multiprocessors. */
#ifndef RV_CUDA_LAUNCH_H
#define RV_CUDA_LAUNCH_H

#include "kernels/backend.h"
#include "kernels/cuda/sizes/step_sizes.h"
#include "kernels/cuda/vendor/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* embed.cu */
void launch_embed_forward(cudaStream_t stream, enum dtype act, act_t *out, const int32_t *tokens, const float *wte,
						  const float *wpe, int n, int t, int c);
/* The rows of dout, sorted by token: those of distinct token i are rows[starts[i]] ..
 * rows[starts[i+1] - 1], ascending, and the token is tokens[rows[starts[i]]]. Segments behind the
 * distinct tokens' are empty. */
struct embed_order {
	const int32_t *tokens, *rows, *starts; /* (n), (n), (segments + 1) */
	int segments;
};
void launch_embed_backward(cudaStream_t stream, enum dtype act, float *dwte, struct embed_order order,
						   const act_t *dout, int c);
void launch_position_backward(cudaStream_t stream, enum dtype act, float *dwpe, const act_t *dout, int b, int t, int c);

/* norm.cu: c up to NORM_WIDTH_MAX, or NORM_ODD_WIDTH_MAX where it is no multiple of 8 or addresses
 * are not of 16 bytes. */
enum { NORM_WIDTH_MAX = 8192, NORM_ODD_WIDTH_MAX = 4096 };
enum norm_kind { NORM_LAYER, NORM_RMS };
struct norm_forward {
	enum norm_kind kind;
	act_t *sum, *out;   /* sum: NULL without a residual */
	float *mean, *rstd; /* mean: NORM_LAYER only */
	const act_t *a, *b; /* x, or the two terms of sum */
	const float *w, *bias;
	float eps;
	int n, c;
};
void launch_norm_forward(cudaStream_t stream, enum dtype act, const struct norm_forward *p);
struct norm_backward {
	enum norm_kind kind;
	act_t *dx;
	float *dw, *dbias;
	const act_t *dout, *x;
	const float *w, *mean, *rstd;
	float *partial; /* norm_backward_scratch_floats(n, c) */
	int n, c;
};
void launch_norm_backward(cudaStream_t stream, enum dtype act, const struct norm_backward *p);

/* column_sum.cu */
/* Adds to sums[c] the sum over rows of x (n, c), with column_sum_scratch_floats(n, c) of
 * scratch. */
void launch_column_sum(cudaStream_t stream, enum dtype act, float *sums, const act_t *x, float *partial, int n, int c);
/* Adds sums[i] += partial[0][i] + partial[1][i] + ..., i < columns; partial has rows of `ld`
 * floats. With `second` (may be NULL) in the same launch: second[i] += partial[0][columns + i] +
 * ... */
void launch_reduce_partials(cudaStream_t stream, float *sums, float *second, const float *partial, int rows,
							int columns, int ld);

/* epilogue.cu */
void launch_gelu_forward(cudaStream_t stream, enum dtype act, act_t *out, const act_t *pre, size_t n);

/* rope.cu, swiglu.cu, convert.cu */
void launch_rope(cudaStream_t stream, enum dtype act, act_t *qkv, const float *table, struct attention_shape s,
				 int first, bool inverse);
void launch_swiglu_forward(cudaStream_t stream, enum dtype act, act_t *out, const act_t *gate_up, int n, int f);
void launch_swiglu_backward(cudaStream_t stream, enum dtype act, act_t *dgate_up, const act_t *dout,
							const act_t *gate_up, int n, int f);
/* Writes out[i] = bf16(in[i]). */
void launch_to_bf16(cudaStream_t stream, void *out, const float *in, size_t n);

/* attention_tiled.cu: any head_dim up to ATTENTION_HEAD_DIM_MAX, both types, fp32 arithmetic. */
enum { ATTENTION_HEAD_DIM_MAX = 256 };
void launch_attention_forward_tiled(cudaStream_t stream, enum dtype act, act_t *out, float *lse, const act_t *qkv,
									struct attention_shape s);
void launch_attention_backward_tiled(cudaStream_t stream, enum dtype act, act_t *dqkv, const act_t *dout,
									 const act_t *qkv, const float *lse, const float *delta, struct attention_shape s);

/* attention_cached.cu */
/* Writes delta (B, heads, T) = the sum over a head's channels of dout * out. */
void launch_attention_delta(cudaStream_t stream, enum dtype act, float *delta, const act_t *dout, const act_t *out,
							struct attention_shape s);
void launch_attention_cached(cudaStream_t stream, enum dtype act, act_t *out, act_t *k, act_t *v, const act_t *qkv,
							 struct attention_shape s, int first);

/* attention_mma_forward.cu, attention_mma_backward.cu: bf16 on tensor cores, head_dim 32, 64 or
 * 128; qkv and dout 16-byte aligned. */
void launch_attention_forward_mma(cudaStream_t stream, act_t *out, float *lse, const act_t *qkv,
								  struct attention_shape s);
void launch_attention_backward_mma(cudaStream_t stream, act_t *dqkv, const act_t *dout, const act_t *qkv,
								   const float *lse, const float *delta, struct attention_shape s);

/* row_difference.cu */
/* Writes sums (rows, 2): for row i the sums of (x - y)^2 and of y^2 over its first `width`
 * elements. x and y: rows of `ld` elements of `type`. */
void launch_row_difference(cudaStream_t stream, enum dtype type, float *sums, const void *x, const void *y, int rows,
						   int width, int ld);

/* classifier.cu */
struct classifier_rows {
	act_t *logits; /* (n, ld): becomes the gradient when `gradient` */
	float *losses; /* (n) */
	const int32_t *targets;
	int n, v, vp, ld; /* columns v .. vp - 1 of the gradient become 0 */
	bool gradient;
	const float *grad_scale; /* one, on the device */
};
void launch_classifier(cudaStream_t stream, enum dtype act, const struct classifier_rows *p);

/* adamw.cu */
/* Writes *sum = the sum of x[i]^2; partial (SUM_SQUARES_PARTIALS). */
void launch_sum_squares(cudaStream_t stream, double *sum, double *partial, const float *x, size_t n);
struct adamw_arrays {
	float *p, *m, *v;
	const float *g;
	void *p_bf16;          /* the bf16 copy of p, updated too; NULL: none */
	const size_t *ends;    /* (n_spans), ascending: span i is [ends[i-1], ends[i]) */
	const uint8_t *decays; /* (n_spans) */
	int n_spans;
	size_t n;
};
void launch_adamw(cudaStream_t stream, const struct adamw_arrays *arrays, const struct adamw_params *a);

/* adamw8.cu: p, g and p_bf16 16-byte aligned. m, v: codes; tops, step and first_block as in
 * backend_ops.adamw8. */
struct adamw8_arrays {
	float *p;
	uint8_t *m, *v;
	float *m_tops, *v_tops;
	const float *g;
	void *p_bf16;
	const size_t *ends;
	const uint8_t *decays;
	int n_spans;
	size_t n;
	uint64_t step, first_block;
};
void launch_adamw8(cudaStream_t stream, const struct adamw8_arrays *arrays, const struct adamw_params *a);

/* update.cu */
void launch_add_scaled(cudaStream_t stream, float *y, float keep, float scale, const float *a, const float *b,
					   size_t n);

#ifdef __cplusplus
}
#endif
#endif
