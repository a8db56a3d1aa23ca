/* gemm_plan.h: cuBLASLt's descriptors and algorithms for one kind of matrix product: made, run and
 * released. gemm_cublaslt.c chooses among them. Source: NVIDIA's documentation of cuBLASLt, "Using
 * the cuBLASLt API".
 *
 * The library is column-major: our row-major d = op(a) op(b) is its d^T = op(b)^T op(a)^T, so its A
 * is our b and its B our a; its bias along rows is ours along columns. Split-K algorithms add their
 * partial sums in fp32 only. */
#ifndef RV_CUDA_GEMM_PLAN_H
#define RV_CUDA_GEMM_PLAN_H

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/vendor/cublaslt_api.h"

enum {
	GEMM_GUESSES = 8,
	GEMM_ALIGNMENT = 16, /* bytes: no algorithm needs more */
};

/* The library on one device. */
struct gemm_library {
	const struct cublaslt_api *api; /* NULL: there is none */
	cublasLtHandle_t handle;
	void *workspace; /* GEMM_WORKSPACE_BYTES */
};

/* The products that share a plan. Compared as bytes, so all are ints. Alignments are in bytes, at
 * most GEMM_ALIGNMENT: pointers that are more aligned than that share a plan. */
struct gemm_key {
	int m, n, k, lda, ldb, ldd;
	int align_a, align_b, align_d;
	int in, out;  /* enum dtype */
	int epilogue; /* enum gemm_epilogue */
	int a_transposed, b_transposed, accumulate;
	int vector;           /* whether there is a bias, or sums of rows */
	int epilogue_aligned; /* of that and aux, if used, to GEMM_ALIGNMENT */
};

/* Ways to compute a product: all by the library; its epilogue by a kernel of ours behind it; all by
 * our own. A product without an epilogue is never FUSED. */
enum gemm_form { GEMM_FUSED, GEMM_UNFUSED, GEMM_OWN };

struct gemm_plan {
	struct gemm_key key;
	enum gemm_form form;
	cublasLtMatmulDesc_t product; /* this and the layouts: NULL where GEMM_OWN */
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algos[GEMM_GUESSES]; /* in the order of trial */
	int n_algos, at;                          /* at: the current one */
};

struct gemm_key gemm_key_of(const struct gemm_call *c);
/* Makes a plan of `form` for c's key with the library's guesses, best first. Queries, so not while
 * a stream captures. Success: there is at least one. Otherwise the plan is GEMM_OWN and holds
 * nothing. */
cublasStatus_t gemm_plan_make(const struct gemm_library *lib, struct gemm_plan *p, const struct gemm_call *c,
							  enum gemm_form form);
void gemm_plan_release(const struct gemm_library *lib, struct gemm_plan *p);
/* Enqueues c by the plan's algorithm `at`, and the epilogue behind it if that is ours. A refused
 * product has enqueued nothing. */
cublasStatus_t gemm_plan_run(const struct gemm_library *lib, const struct gemm_plan *p, cudaStream_t stream,
							 const struct gemm_call *c);

#endif
