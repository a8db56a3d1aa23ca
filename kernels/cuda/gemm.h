/* gemm.h: one matrix product in front of cuBLASLt (gemm_cublaslt.c) and the emulator's loop
 * (tests/emu/gemm_loop.c).
 *
 * All matrices are row-major. d (m, n) = op(a) (m, k) op(b) (k, n), where op transposes if asked: a
 * is stored (m, k) or, a_transposed, (k, m); b is stored (k, n) or, b_transposed, (n, k). Leading
 * dimensions are of the stored matrices, in elements. Sums are fp32. No alignment beyond an
 * element's own may be assumed: models may have odd sizes. */
#ifndef RV_CUDA_GEMM_H
#define RV_CUDA_GEMM_H

#include "base/err.h"
#include "kernels/backend.h"
#include "kernels/cuda/sizes/step_sizes.h"
#include "kernels/cuda/vendor/runtime.h"

enum gemm_epilogue {
	GEMM_PLAIN, /* d = acc, or d += acc with `accumulate` */
	GEMM_BIAS,  /* d = acc + bias */
	GEMM_GELU,  /* aux = acc + bias (bias may be NULL); d = gelu_tanh(aux) */
	GEMM_DGELU, /* d = acc * gelu_tanh'(aux) */
	GEMM_SUMS   /* d = or += acc; row_sums[i] += the sum of row i of op(a): dw, and dbias beside it */
};

struct gemm_call {
	const void *a, *b;
	void *d;
	int m, n, k, lda, ldb, ldd;
	bool a_transposed, b_transposed, accumulate;
	enum dtype in, out; /* of a, b and bias; of d and aux */
	enum gemm_epilogue epilogue;
	const void *bias; /* (n) */
	void *aux;        /* like d, leading dimension ldd: written by GEMM_GELU, read by GEMM_DGELU */
	/* GEMM_SUMS only, where a is transposed and dense (lda == m), b is not, and out is fp32. */
	float *row_sums; /* (m) */
	float *scratch;  /* column_sum_scratch_floats(k, m) */
};

struct gemm;

/* Opens products on the current device. RV_E_NOMEM, or RV_E_UNSUPPORTED with the library's
 * message. */
enum rv_err gemm_open(struct gemm **out, struct rv_errtext *et);
void gemm_close(struct gemm *g); /* NULL is fine */
/* Returns the device memory that gemm_open takes, in bytes. */
size_t gemm_workspace_bytes(void);
/* Enqueues a product; does not wait. The same call gives the same bits. A product that the library
 * refuses is computed in another way (see gemm_cublaslt.c), which is logged; asserts that the
 * device works. While `stream` captures, a call whose algorithm has yet to be found enqueues
 * nothing and returns false: finding it would query, allocate and wait. */
bool gemm_run(struct gemm *g, cudaStream_t stream, const struct gemm_call *call);

#endif
