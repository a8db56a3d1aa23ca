/* product.h: one matrix product as a test makes it: operands on the emulated device, run by gemm.h,
 * and held against the same product in fp64. */
#ifndef RV_TESTS_KERNELS_PRODUCT_H
#define RV_TESTS_KERNELS_PRODUCT_H

#include "kernels/cuda/gemm.h"

/* What varies. Matrices are dense, with `padding` more elements in each row (of a: not with
 * GEMM_SUMS). */
struct product_kind {
	int m, n, k, padding;
	bool a_transposed, b_transposed, accumulate, bias;
	enum dtype in, out;
	enum gemm_epilogue epilogue;
	int shift; /* elements by which a, b and d are off their alignment; bias and aux too where shift_epilogue */
	bool shift_epilogue;
};

struct product_case {
	struct gemm_call call;
	void *memory[7];  /* of a, b, d, bias, aux, row_sums, scratch */
	double *d, *aux;  /* (m, ldd) what is expected, in fp64; where rows are padded, what was there */
	double *row_sums; /* (m) likewise; of GEMM_SUMS */
};

/* Numbers in [-1, 1), a function of the kind alone. */
void product_init(struct product_case *p, const struct product_kind *k);
void product_release(struct product_case *p);
/* Waits for `stream`, then fails the test where d, aux or row_sums differ from what is expected by
 * more than rounding, or where what lies between rows was written. */
void product_check(const struct product_case *p, cudaStream_t stream);
/* All of the above, by gemm_run, which must accept the call. */
void product_run(struct gemm *g, cudaStream_t stream, const struct product_kind *k);

#endif
