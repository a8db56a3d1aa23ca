/* cuda_ops.c: the operations of kernels/backend.h as kernels (launch.h) and matrix products
 * (gemm.h). */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <math.h>

static const float layernorm_eps = 1e-5f;

static void layer_forward(struct cuda_backend *cu, struct norm_forward p) {
	RV_ASSERT(p.c <= (p.c % 8 ? NORM_ODD_WIDTH_MAX : NORM_WIDTH_MAX));
	p.w = cuda_vector_of_weights(cu, p.w, (size_t)p.c);
	p.bias = cuda_vector_of_weights(cu, p.bias, (size_t)p.c);
	launch_norm_forward(cu->stream, cu->base.act, &p);
}

static void layer_backward(struct cuda_backend *cu, struct norm_backward p) {
	RV_ASSERT(p.c <= (p.c % 8 ? NORM_ODD_WIDTH_MAX : NORM_WIDTH_MAX));
	p.w = cuda_vector_of_weights(cu, p.w, (size_t)p.c);
	p.partial = cuda_scratch(cu, SCRATCH_PARTIALS, norm_backward_scratch_floats(p.n, p.c) * sizeof(float));
	launch_norm_backward(cu->stream, cu->base.act, &p);
	cuda_weights_changed(cu, p.dw, (size_t)p.c * sizeof(float));
	if (p.dbias)
		cuda_weights_changed(cu, p.dbias, (size_t)p.c * sizeof(float));
}

void cuda_layernorm_forward(struct backend *be, act_t *out, float *mean, float *rstd, const act_t *x, const float *w,
							const float *bias, int n, int c) {
	layer_forward(cuda_of(be), (struct norm_forward){.kind = NORM_LAYER,
													 .out = out,
													 .mean = mean,
													 .rstd = rstd,
													 .a = x,
													 .w = w,
													 .bias = bias,
													 .eps = layernorm_eps,
													 .n = n,
													 .c = c});
}

void cuda_residual_layernorm_forward(struct backend *be, act_t *sum, act_t *out, float *mean, float *rstd,
									 const act_t *a, const act_t *b, const float *w, const float *bias, int n, int c) {
	layer_forward(cuda_of(be),
				  (struct norm_forward){NORM_LAYER, sum, out, mean, rstd, a, b, w, bias, layernorm_eps, n, c});
}

void cuda_layernorm_backward(struct backend *be, act_t *dx, float *dw, float *dbias, const act_t *dout, const act_t *x,
							 const float *w, const float *mean, const float *rstd, int n, int c) {
	layer_backward(cuda_of(be), (struct norm_backward){NORM_LAYER, dx, dw, dbias, dout, x, w, mean, rstd, NULL, n, c});
}

void cuda_rmsnorm_forward(struct backend *be, act_t *out, float *rstd, const act_t *x, const float *w, float eps, int n,
						  int c) {
	layer_forward(
		cuda_of(be),
		(struct norm_forward){.kind = NORM_RMS, .out = out, .rstd = rstd, .a = x, .w = w, .eps = eps, .n = n, .c = c});
}

void cuda_residual_rmsnorm_forward(struct backend *be, act_t *sum, act_t *out, float *rstd, const act_t *a,
								   const act_t *b, const float *w, float eps, int n, int c) {
	layer_forward(cuda_of(be), (struct norm_forward){NORM_RMS, sum, out, NULL, rstd, a, b, w, NULL, eps, n, c});
}

void cuda_rmsnorm_backward(struct backend *be, act_t *dx, float *dw, const act_t *dout, const act_t *x, const float *w,
						   const float *rstd, int n, int c) {
	layer_backward(cuda_of(be), (struct norm_backward){NORM_RMS, dx, dw, NULL, dout, x, w, NULL, rstd, NULL, n, c});
}

void cuda_rope(struct backend *be, act_t *qkv, const float *table, struct attention_shape s, int first, bool inverse) {
	RV_ASSERT(s.head_dim % 2 == 0 && first >= 0);
	launch_rope(cuda_of(be)->stream, be->act, qkv, table, s, first, inverse);
}

void cuda_swiglu_forward(struct backend *be, act_t *out, const act_t *gate_up, int n, int f) {
	launch_swiglu_forward(cuda_of(be)->stream, be->act, out, gate_up, n, f);
}

void cuda_swiglu_backward(struct backend *be, act_t *dgate_up, const act_t *dout, const act_t *gate_up, int n, int f) {
	launch_swiglu_backward(cuda_of(be)->stream, be->act, dgate_up, dout, gate_up, n, f);
}

void cuda_gelu_forward(struct backend *be, act_t *out, const act_t *pre, size_t n) {
	launch_gelu_forward(cuda_of(be)->stream, be->act, out, pre, n);
}

void cuda_linear_forward(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						 struct linear_shape s, enum linear_epilogue ep) {
	struct cuda_backend *cu = cuda_of(be);
	const struct gemm_call call = {
		.a = x,
		.b = cuda_weights(cu, w, (size_t)s.o * s.c),
		.d = y,
		.m = s.n,
		.n = s.o,
		.k = s.c,
		.lda = s.c,
		.ldb = s.c,
		.ldd = s.o,
		.b_transposed = true,
		.in = be->act,
		.out = be->act,
		.epilogue = ep == LINEAR_GELU ? GEMM_GELU
					: bias            ? GEMM_BIAS
									  : GEMM_PLAIN,
		.bias = cuda_weights(cu, bias, (size_t)s.o),
		.aux = pre,
	};
	cuda_gemm(cu, &call);
}

void cuda_linear_backward_input(struct backend *be, act_t *dx, const act_t *dy, const float *w, const act_t *pre,
								struct linear_shape s, enum linear_epilogue ep) {
	struct cuda_backend *cu = cuda_of(be);
	const struct gemm_call call = {
		.a = dy,
		.b = cuda_weights(cu, w, (size_t)s.o * s.c),
		.d = dx,
		.m = s.n,
		.n = s.c,
		.k = s.o,
		.lda = s.o,
		.ldb = s.c,
		.ldd = s.c,
		.in = be->act,
		.out = be->act,
		.epilogue = ep == LINEAR_GELU ? GEMM_DGELU : GEMM_PLAIN,
		.aux = (void *)(uintptr_t)pre, /* read only */
	};
	cuda_gemm(cu, &call);
}

void cuda_linear_backward_weight(struct backend *be, float *dw, float *dbias, const act_t *dy, const act_t *x,
								 struct linear_shape s, enum gradient_mode mode) {
	struct cuda_backend *cu = cuda_of(be);
	const size_t scratch = dbias ? column_sum_scratch_floats(s.n, s.o) * sizeof(float) : 0;
	const struct gemm_call call = {
		.a = dy,
		.b = x,
		.d = dw,
		.m = s.o,
		.n = s.c,
		.k = s.n,
		.lda = s.o,
		.ldb = s.c,
		.ldd = s.c,
		.a_transposed = true,
		.accumulate = mode == GRADIENT_ADD,
		.in = cu->base.act,
		.out = DTYPE_F32,
		.epilogue = dbias ? GEMM_SUMS : GEMM_PLAIN,
		.row_sums = dbias,
		.scratch = dbias ? cuda_scratch(cu, SCRATCH_PARTIALS, scratch) : NULL,
	};
	cuda_gemm(cu, &call);
	cuda_weights_changed(cu, dw, (size_t)s.o * s.c * sizeof(float));
	cuda_weights_changed(cu, dbias, dbias ? (size_t)s.o * sizeof(float) : 0);
}

void cuda_add_scaled(struct backend *be, float *y, float keep, float scale, const float *a, const float *b, size_t n) {
	launch_add_scaled(cuda_of(be)->stream, y, keep, scale, a, b, n);
	cuda_weights_changed(cuda_of(be), y, n * sizeof(float));
}

/* Returns n floats as an operand of a product: themselves, or with bf16 activations a copy in
 * `which`. */
static const void *operand(struct cuda_backend *cu, enum cuda_scratch which, const float *x, size_t n) {
	if (cu->base.act == DTYPE_F32)
		return x;
	void *copy = cuda_scratch(cu, which, n * dtype_bytes(DTYPE_BF16));
	launch_to_bf16(cu->stream, copy, x, n);
	return copy;
}

void cuda_product(struct backend *be, float *c, const float *a, const float *b, struct product_shape s) {
	struct cuda_backend *cu = cuda_of(be);
	const struct gemm_call call = {
		.a = operand(cu, SCRATCH_A, a, (size_t)s.m * s.k),
		.b = operand(cu, SCRATCH_B, b, (size_t)s.k * s.n),
		.d = c,
		.m = s.m,
		.n = s.n,
		.k = s.k,
		.lda = s.a_transposed ? s.m : s.k,
		.ldb = s.b_transposed ? s.k : s.n,
		.ldd = s.n,
		.a_transposed = s.a_transposed,
		.b_transposed = s.b_transposed,
		.in = be->act,
		.out = DTYPE_F32,
		.epilogue = GEMM_PLAIN,
	};
	cuda_gemm(cu, &call);
	cuda_weights_changed(cu, c, (size_t)s.m * s.n * sizeof(float));
}

const double *cuda_enqueue_squares(struct cuda_backend *cu, const float *x, size_t n) {
	double *partial = cuda_scratch(cu, SCRATCH_PARTIALS, (SUM_SQUARES_PARTIALS + 1) * sizeof(double));
	launch_sum_squares(cu->stream, partial + SUM_SQUARES_PARTIALS, partial, x, n);
	return partial + SUM_SQUARES_PARTIALS;
}

double cuda_sum_squares(struct backend *be, const float *x, size_t n) {
	struct cuda_backend *cu = cuda_of(be);
	double sum;
	cuda_fetch(cu, &sum, cuda_enqueue_squares(cu, x, n), sizeof sum);
	return sum;
}
