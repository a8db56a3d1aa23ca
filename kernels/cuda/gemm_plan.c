/* gemm_plan.c: see gemm_plan.h. */
#include "kernels/cuda/gemm_plan.h"

#include "base/assert.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_epilogue.h"
#include "kernels/cuda/launch_product.h"

static int alignment_of(const void *p) {
	uintptr_t at = (uintptr_t)p;
	return at % GEMM_ALIGNMENT == 0 ? GEMM_ALIGNMENT : (int)(at & (~at + 1));
}

/* Returns the vector that the library's epilogue reads, or writes: its sums of rows replace what
 * was there, so they go to scratch. */
static const void *vector_of(const struct gemm_call *c) {
	return c->epilogue == GEMM_SUMS ? c->scratch : c->bias;
}

struct gemm_key gemm_key_of(const struct gemm_call *c) {
	return (struct gemm_key){
		.m = c->m,
		.n = c->n,
		.k = c->k,
		.lda = c->lda,
		.ldb = c->ldb,
		.ldd = c->ldd,
		.align_a = alignment_of(c->a),
		.align_b = alignment_of(c->b),
		.align_d = alignment_of(c->d),
		.in = (int)c->in,
		.out = (int)c->out,
		.epilogue = (int)c->epilogue,
		.a_transposed = c->a_transposed,
		.b_transposed = c->b_transposed,
		.accumulate = c->accumulate,
		.vector = vector_of(c) != NULL,
		.epilogue_aligned = alignment_of(vector_of(c)) == GEMM_ALIGNMENT && alignment_of(c->aux) == GEMM_ALIGNMENT,
	};
}

static cudaDataType_t type_of(int dtype) {
	return dtype == DTYPE_F32 ? CUDA_R_32F : CUDA_R_16BF;
}

static cublasLtEpilogue_t epilogue_of(const struct gemm_key *k) {
	switch ((enum gemm_epilogue)k->epilogue) {
	case GEMM_PLAIN:
		return CUBLASLT_EPILOGUE_DEFAULT;
	case GEMM_BIAS:
		return CUBLASLT_EPILOGUE_BIAS;
	case GEMM_GELU:
		return k->vector ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
	case GEMM_DGELU:
		return CUBLASLT_EPILOGUE_DGELU;
	case GEMM_SUMS:
		return CUBLASLT_EPILOGUE_BGRADB; /* our a is the library's B */
	}
	RV_UNREACHABLE("all epilogues are above");
}

/* An attribute of a descriptor. */
struct attribute {
	int what;
	const void *value;
	size_t bytes;
};

/* Sets the attributes up to one without a value. */
static cublasStatus_t set(const struct gemm_library *lib, cublasLtMatmulDesc_t d, const struct attribute *a) {
	cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
	for (; s == CUBLAS_STATUS_SUCCESS && a->value; a++)
		s = lib->api->cublasLtMatmulDescSetAttribute(d, a->what, a->value, a->bytes);
	return s;
}

/* Describes a matrix as it is stored: a row-major (rows, columns) matrix is a column-major
 * (columns, rows) one. */
static cublasStatus_t layout(const struct gemm_library *lib, cublasLtMatrixLayout_t *l, int dtype, int rows,
							 int columns, int ld) {
	return lib->api->cublasLtMatrixLayoutCreate(l, type_of(dtype), (uint64_t)columns, (uint64_t)rows, ld);
}

static cublasStatus_t make_layouts(const struct gemm_library *lib, struct gemm_plan *p) {
	const struct gemm_key *k = &p->key;
	cublasStatus_t s =
		k->b_transposed ? layout(lib, &p->a, k->in, k->n, k->k, k->ldb) : layout(lib, &p->a, k->in, k->k, k->n, k->ldb);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = k->a_transposed ? layout(lib, &p->b, k->in, k->k, k->m, k->lda)
							: layout(lib, &p->b, k->in, k->m, k->k, k->lda);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = layout(lib, &p->d, k->out, k->m, k->n, k->ldd);
	return s;
}

static bool has_aux(const struct gemm_key *k) {
	return k->epilogue == GEMM_GELU || k->epilogue == GEMM_DGELU;
}

static cublasStatus_t describe_epilogue(const struct gemm_library *lib, const struct gemm_plan *p) {
	const struct gemm_key *k = &p->key;
	const cublasLtEpilogue_t epilogue = epilogue_of(k);
	const cudaDataType_t bias_type = type_of(k->epilogue == GEMM_SUMS ? k->out : k->in), aux_type = type_of(k->out);
	const int64_t aux_ld = k->ldd;
	const struct attribute all[] = {{CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue}, {0}},
						   bias[] = {{CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type}, {0}},
						   aux[] = {{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, sizeof aux_ld},
									{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &aux_type, sizeof aux_type},
									{0}};
	cublasStatus_t s = set(lib, p->product, all);
	if (s == CUBLAS_STATUS_SUCCESS && k->vector)
		s = set(lib, p->product, bias);
	if (s == CUBLAS_STATUS_SUCCESS && has_aux(k))
		s = set(lib, p->product, aux);
	return s;
}

static cublasStatus_t describe(const struct gemm_library *lib, struct gemm_plan *p) {
	const struct gemm_key *k = &p->key;
	const cublasOperation_t op_a = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t op_b = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const struct attribute operations[] = {
		{CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a}, {CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b}, {0}};
	cublasStatus_t s = lib->api->cublasLtMatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = set(lib, p->product, operations);
	if (s == CUBLAS_STATUS_SUCCESS && p->form == GEMM_FUSED)
		s = describe_epilogue(lib, p);
	return s == CUBLAS_STATUS_SUCCESS ? make_layouts(lib, p) : s;
}

/* Sets the addresses of the vector and aux: before the library's guesses, which depend on their
 * alignment, and before each run. */
static cublasStatus_t point(const struct gemm_library *lib, const struct gemm_plan *p, const struct gemm_call *c) {
	const void *vector = vector_of(c);
	const struct attribute bias[] = {{CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector}, {0}},
						   aux[] = {{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &c->aux, sizeof c->aux}, {0}};
	cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
	if (p->form == GEMM_FUSED && p->key.vector)
		s = set(lib, p->product, bias);
	if (s == CUBLAS_STATUS_SUCCESS && p->form == GEMM_FUSED && has_aux(&p->key))
		s = set(lib, p->product, aux);
	return s;
}

/* ---- the library's guesses ---- */

static cublasStatus_t prefer(const struct gemm_library *lib, cublasLtMatmulPreference_t preference,
							 const struct gemm_key *k) {
	const uint64_t workspace = GEMM_WORKSPACE_BYTES;
	const uint32_t a = (uint32_t)k->align_b, b = (uint32_t)k->align_a, d = (uint32_t)k->align_d;
	const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	const struct attribute all[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
									{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof sums},
									{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a},
									{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b},
									{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &d, sizeof d},
									{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &d, sizeof d}};
	cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
	for (size_t i = 0; s == CUBLAS_STATUS_SUCCESS && i < sizeof all / sizeof all[0]; i++)
		s = lib->api->cublasLtMatmulPreferenceSetAttribute(preference, all[i].what, all[i].value, all[i].bytes);
	return s;
}

/* Keeps the guesses that the library itself has found to work. */
static cublasStatus_t keep(struct gemm_plan *p, const cublasLtMatmulHeuristicResult_t *guesses, int n) {
	p->n_algos = 0;
	for (int i = 0; i < n; i++)
		if (guesses[i].state == CUBLAS_STATUS_SUCCESS && guesses[i].workspaceSize <= GEMM_WORKSPACE_BYTES)
			p->algos[p->n_algos++] = guesses[i].algo;
	return p->n_algos > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t guess(const struct gemm_library *lib, struct gemm_plan *p) {
	cublasLtMatmulHeuristicResult_t guesses[GEMM_GUESSES];
	cublasLtMatmulPreference_t preference;
	int n = 0;
	cublasStatus_t s = lib->api->cublasLtMatmulPreferenceCreate(&preference);
	if (s != CUBLAS_STATUS_SUCCESS)
		return s;
	s = prefer(lib, preference, &p->key);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = lib->api->cublasLtMatmulAlgoGetHeuristic(lib->handle, p->product, p->a, p->b, p->d, p->d, preference,
													 GEMM_GUESSES, guesses, &n);
	(void)lib->api->cublasLtMatmulPreferenceDestroy(preference);
	return s == CUBLAS_STATUS_SUCCESS ? keep(p, guesses, n) : s;
}

cublasStatus_t gemm_plan_make(const struct gemm_library *lib, struct gemm_plan *p, const struct gemm_call *c,
							  enum gemm_form form) {
	*p = (struct gemm_plan){.key = gemm_key_of(c), .form = form};
	cublasStatus_t s = describe(lib, p);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = point(lib, p, c);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = guess(lib, p);
	if (s != CUBLAS_STATUS_SUCCESS) {
		gemm_plan_release(lib, p);
		p->form = GEMM_OWN;
	}
	return s;
}

void gemm_plan_release(const struct gemm_library *lib, struct gemm_plan *p) {
	if (p->a)
		(void)lib->api->cublasLtMatrixLayoutDestroy(p->a);
	if (p->b)
		(void)lib->api->cublasLtMatrixLayoutDestroy(p->b);
	if (p->d)
		(void)lib->api->cublasLtMatrixLayoutDestroy(p->d);
	if (p->product)
		(void)lib->api->cublasLtMatmulDescDestroy(p->product);
	p->a = p->b = p->d = NULL;
	p->product = NULL;
}

cublasStatus_t gemm_plan_run(const struct gemm_library *lib, const struct gemm_plan *p, cudaStream_t stream,
							 const struct gemm_call *c) {
	const float alpha = 1, beta = c->accumulate ? 1 : 0;
	bool ours = p->form == GEMM_UNFUSED && c->epilogue != GEMM_PLAIN;
	void *d = ours && c->epilogue == GEMM_GELU ? c->aux : c->d;
	cublasStatus_t s = point(lib, p, c);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = lib->api->cublasLtMatmul(lib->handle, p->product, &alpha, c->b, p->a, c->a, p->b, &beta, d, p->d, d, p->d,
									 &p->algos[p->at], lib->workspace, GEMM_WORKSPACE_BYTES, stream);
	if (s == CUBLAS_STATUS_SUCCESS && ours)
		launch_epilogue(stream, c);
	if (s == CUBLAS_STATUS_SUCCESS && p->form == GEMM_FUSED && c->epilogue == GEMM_SUMS)
		launch_reduce_partials(stream, c->row_sums, NULL, c->scratch, 1, c->m, c->m);
	return s;
}
