/* cublaslt_stand_in.c: see cublaslt_stand_in.h. */
#include "tests/kernels/gemm/cublaslt_stand_in.h"

#include "tests/emu/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 4, VECTOR_BYTES = 16, AUX_LD_MULTIPLE = 8, MORE_ALIGNMENT = 1 << 16, WORKSPACE_ALIGNMENT = 256 };

static struct cublaslt_stand_in_options options;
static struct cublaslt_stand_in_counts counts;

void cublaslt_stand_in_reset(const struct cublaslt_stand_in_options *o) {
	options = o ? *o : (struct cublaslt_stand_in_options){.fail_start = false};
	counts = (struct cublaslt_stand_in_counts){.objects = counts.objects};
}

struct cublaslt_stand_in_counts cublaslt_stand_in_count(void) {
	return counts;
}

/* ---- objects ---- */

enum kind { HANDLE = 0x4c54, DESCRIPTOR, LAYOUT, PREFERENCE };

struct cublasLtContext {
	enum kind kind;
};

struct cublaslt_matmul_desc {
	enum kind kind;
	cublasComputeType_t compute;
	cudaDataType_t scale, bias_type, aux_type;
	int32_t transa, transb;
	uint32_t epilogue;
	void *bias; /* read; written with BGRADB */
	void *aux;
	int64_t aux_ld;
};

struct cublaslt_matrix_layout {
	enum kind kind;
	cudaDataType_t type;
	uint64_t rows, columns;
	int64_t ld;
};

struct cublaslt_matmul_preference {
	enum kind kind;
	uint64_t workspace;
	uint32_t schemes, align_a, align_b, align_c, align_d;
};

/* A misuse that the library would not survive either. */
static void misuse(const char *what) {
	(void)fprintf(stderr, "cuBLASLt's stand-in: %s\n", what);
	abort();
}

static void *create(size_t bytes, enum kind kind) {
	void *object = calloc(1, bytes);
	if (!object)
		misuse("no memory");
	memcpy(object, &kind, sizeof kind);
	counts.objects++;
	return object;
}

static void expect(const void *object, enum kind kind) {
	if (!object || memcmp(object, &kind, sizeof kind) != 0)
		misuse("an object that is none of that kind, or was destroyed");
}

static cublasStatus_t destroy(void *object, enum kind kind) {
	expect(object, kind);
	memset(object, 0, sizeof kind);
	free(object);
	counts.objects--;
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) {
	return 130000;
}

const char *cublasLtGetStatusString(cublasStatus_t s) {
	switch (s) {
	case CUBLAS_STATUS_SUCCESS:
		return "success";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "the library was not initialized";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "the resource allocation failed";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "an invalid value was passed as an argument";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "the functionality requested is not supported";
	default:
		return "unknown";
	}
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
	if (options.fail_start)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*out = create(sizeof **out, HANDLE);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
	return destroy(h, HANDLE);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
	if (options.fail_descriptors)
		return CUBLAS_STATUS_ALLOC_FAILED;
	cublasLtMatmulDesc_t d = create(sizeof *d, DESCRIPTOR);
	d->compute = compute;
	d->scale = scale;
	d->bias_type = d->aux_type = -1;
	d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	*out = d;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
	return destroy(d, DESCRIPTOR);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type, uint64_t rows,
										  uint64_t columns, int64_t ld) {
	cublasLtMatrixLayout_t l = create(sizeof *l, LAYOUT);
	l->type = type;
	l->rows = rows;
	l->columns = columns;
	l->ld = ld;
	*out = l;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
	return destroy(l, LAYOUT);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
	cublasLtMatmulPreference_t p = create(sizeof *p, PREFERENCE);
	p->schemes = 7;
	p->align_a = p->align_b = p->align_c = p->align_d = 256;
	*out = p;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
	return destroy(p, PREFERENCE);
}

/* An attribute's place in its object. */
struct slot {
	int attribute;
	void *at;
	size_t bytes;
};

static cublasStatus_t store(const struct slot *slots, size_t n, int attribute, const void *value, size_t bytes) {
	for (size_t i = 0; i < n; i++)
		if (slots[i].attribute == attribute && slots[i].bytes == bytes && value) {
			memcpy(slots[i].at, value, bytes);
			return CUBLAS_STATUS_SUCCESS;
		}
	return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what,
											  const void *value, size_t bytes) {
	expect(d, DESCRIPTOR);
	const struct slot slots[] = {
		{CUBLASLT_MATMUL_DESC_TRANSA, &d->transa, sizeof d->transa},
		{CUBLASLT_MATMUL_DESC_TRANSB, &d->transb, sizeof d->transb},
		{CUBLASLT_MATMUL_DESC_EPILOGUE, &d->epilogue, sizeof d->epilogue},
		{CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, sizeof d->bias},
		{CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &d->bias_type, sizeof d->bias_type},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &d->aux, sizeof d->aux},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &d->aux_ld, sizeof d->aux_ld},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &d->aux_type, sizeof d->aux_type},
	};
	return store(slots, sizeof slots / sizeof slots[0], what, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
													cublasLtMatmulPreferenceAttributes_t what, const void *value,
													size_t bytes) {
	expect(p, PREFERENCE);
	const struct slot slots[] = {
		{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->workspace, sizeof p->workspace},
		{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &p->schemes, sizeof p->schemes},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p->align_a, sizeof p->align_a},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p->align_b, sizeof p->align_b},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &p->align_c, sizeof p->align_c},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &p->align_d, sizeof p->align_d},
	};
	return store(slots, sizeof slots / sizeof slots[0], what, value, bytes);
}

/* ---- what the documentation allows ---- */

static size_t size_of(cudaDataType_t type) {
	return type == CUDA_R_32F ? 4 : 2;
}

static bool adds_bias(uint32_t epilogue) {
	return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static bool uses_vector(uint32_t epilogue) {
	return adds_bias(epilogue) || epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

static bool writes_aux(uint32_t epilogue) {
	return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static bool uses_aux(uint32_t epilogue) {
	return writes_aux(epilogue) || epilogue == CUBLASLT_EPILOGUE_DGELU;
}

static bool aligned(const void *p, size_t bytes) {
	return (uintptr_t)p % bytes == 0;
}

/* What a product is made of. */
struct problem {
	const struct cublaslt_matmul_desc *op;
	const struct cublaslt_matrix_layout *a, *b, *c, *d;
};

/* Whether shapes fit together: op(a) (m, k), op(b) (k, n), c and d (m, n), column-major. */
static cublasStatus_t check_shapes(const struct problem *p) {
	const struct cublaslt_matrix_layout *all[] = {p->a, p->b, p->c, p->d};
	expect(p->op, DESCRIPTOR);
	for (int i = 0; i < 4; i++) {
		expect(all[i], LAYOUT);
		if (all[i]->rows == 0 || all[i]->columns == 0 || all[i]->ld < (int64_t)all[i]->rows)
			return CUBLAS_STATUS_INVALID_VALUE;
	}
	uint64_t m = p->op->transa ? p->a->columns : p->a->rows, k = p->op->transa ? p->a->rows : p->a->columns;
	uint64_t k_b = p->op->transb ? p->b->columns : p->b->rows, n = p->op->transb ? p->b->rows : p->b->columns;
	bool fit = k == k_b && p->d->rows == m && p->d->columns == n && p->c->rows == m && p->c->columns == n;
	return fit ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t check_epilogue(const struct problem *p) {
	const struct cublaslt_matmul_desc *op = p->op;
	if (op->epilogue == CUBLASLT_EPILOGUE_DEFAULT)
		return CUBLAS_STATUS_SUCCESS;
	if (!uses_vector(op->epilogue) && !uses_aux(op->epilogue))
		return CUBLAS_STATUS_INVALID_VALUE;
	/* Types are those of the output; -1, the default, means that. */
	if (uses_vector(op->epilogue) && op->bias_type != -1 && op->bias_type != p->d->type)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (uses_aux(op->epilogue) && ((op->aux_type != -1 && op->aux_type != p->d->type) ||
								   op->aux_ld % AUX_LD_MULTIPLE != 0 || op->aux_ld < (int64_t)p->d->rows))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return aligned(op->bias, VECTOR_BYTES) && aligned(op->aux, VECTOR_BYTES) ? CUBLAS_STATUS_SUCCESS
																			 : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t check(const struct problem *p) {
	cublasStatus_t s = check_shapes(p);
	bool types = p->a->type == p->b->type && p->c->type == p->d->type && p->op->compute == CUBLAS_COMPUTE_32F &&
				 p->op->scale == CUDA_R_32F && (p->a->type == CUDA_R_16BF || p->d->type == CUDA_R_32F);
	if (s == CUBLAS_STATUS_SUCCESS && !types)
		s = CUBLAS_STATUS_NOT_SUPPORTED;
	return s == CUBLAS_STATUS_SUCCESS ? check_epilogue(p) : s;
}

/* ---- algorithms ---- */

static const struct {
	uint32_t scheme, alignment;
} algorithms[STAND_IN_ALGORITHMS] = {
	[STAND_IN_INPLACE] = {CUBLASLT_REDUCTION_SCHEME_INPLACE, 4},
	[STAND_IN_OUTPUT_TYPE] = {CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4},
	[STAND_IN_VECTORS] = {CUBLASLT_REDUCTION_SCHEME_NONE, VECTOR_BYTES},
	[STAND_IN_COMPUTE_TYPE] = {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, VECTOR_BYTES},
	[STAND_IN_ELEMENTS] = {CUBLASLT_REDUCTION_SCHEME_NONE, 1},
};

static size_t workspace_of(int algorithm, const struct cublaslt_matrix_layout *d) {
	size_t sums = (size_t)(d->rows * d->columns) * PIECES;
	switch (algorithm) {
	case STAND_IN_OUTPUT_TYPE:
		return sums * size_of(d->type);
	case STAND_IN_COMPUTE_TYPE:
		return sums * sizeof(float);
	case STAND_IN_INPLACE:
		return sizeof(uint32_t);
	default:
		return 0;
	}
}

static bool preferred(const struct cublaslt_matmul_preference *p, int algorithm,
					  const struct cublaslt_matrix_layout *d) {
	uint32_t scheme = algorithms[algorithm].scheme, alignment = algorithms[algorithm].alignment;
	return (scheme & p->schemes) == scheme && alignment <= p->align_a && alignment <= p->align_b &&
		   alignment <= p->align_c && alignment <= p->align_d && workspace_of(algorithm, d) <= p->workspace;
}

/* One result; the algorithm travels in the first word of its opaque bytes. */
static void offer(cublasLtMatmulHeuristicResult_t *r, int algorithm, const struct cublaslt_matrix_layout *d,
				  cublasStatus_t state) {
	memset(r, 0, sizeof *r);
	r->algo.data[0] = (uint64_t)algorithm;
	r->workspaceSize = workspace_of(algorithm, d);
	r->state = state;
	r->wavesCount = 1;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
											  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
											  cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t p, int wanted,
											  cublasLtMatmulHeuristicResult_t *results, int *found) {
	const struct problem problem = {op, a, b, c, d};
	expect(h, HANDLE);
	expect(p, PREFERENCE);
	*found = 0;
	counts.queries++;
	if (emu_thread_captures()) { /* CUDA 13.3 does so too */
		counts.queries_in_capture++;
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
	cublasStatus_t s = check(&problem);
	if (s != CUBLAS_STATUS_SUCCESS)
		return s;
	if (options.refuse_guesses || (options.refuse_fused_guesses && op->epilogue != CUBLASLT_EPILOGUE_DEFAULT))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (options.unusable_guesses && wanted > 0)
		offer(&results[(*found)++], STAND_IN_ALGORITHMS, d, CUBLAS_STATUS_NOT_SUPPORTED);
	for (int i = 0; i < STAND_IN_ALGORITHMS && *found < wanted; i++)
		if (preferred(p, i, d))
			offer(&results[(*found)++], i, d, CUBLAS_STATUS_SUCCESS);
	return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* ---- the product, on the device ---- */

struct job {
	struct cublaslt_matmul_desc op;
	struct cublaslt_matrix_layout a, b, c, d;
	const void *at_a, *at_b, *at_c;
	void *at_d;
	float alpha, beta;
	int algorithm;
};

static float get(const void *p, size_t i, cudaDataType_t type) {
	float f;
	if (type == CUDA_R_32F) {
		memcpy(&f, (const char *)p + i * sizeof f, sizeof f);
		return f;
	}
	uint16_t half;
	memcpy(&half, (const char *)p + i * sizeof half, sizeof half);
	uint32_t bits = (uint32_t)half << 16;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint16_t to_bf16(float f) {
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void put(void *p, size_t i, cudaDataType_t type, float f) {
	uint16_t half = to_bf16(f);
	if (type == CUDA_R_32F)
		memcpy((char *)p + i * sizeof f, &f, sizeof f);
	else
		memcpy((char *)p + i * sizeof half, &half, sizeof half);
}

static float rounded(float f, cudaDataType_t type) {
	const uint16_t half = to_bf16(f);
	return type == CUDA_R_32F ? f : get(&half, 0, type);
}

static double inner(double x) {
	return tanh(0.79788456080286536 * (x + 0.044715 * x * x * x));
}

static double gelu(double x) {
	return 0.5 * x * (1 + inner(x));
}

static double gelu_slope(double x) {
	double t = inner(x);
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.79788456080286536 * (1 + 3 * 0.044715 * x * x);
}

/* Element (i, j) of op(a) op(b) over [first, end) of k, as tensor cores add it: in fp32. */
static float sum_of(const struct job *w, size_t i, size_t j, uint64_t first, uint64_t end) {
	float sum = 0;
	for (size_t l = first; l < end; l++) {
		size_t at_a = w->op.transa ? l + i * (size_t)w->a.ld : i + l * (size_t)w->a.ld;
		size_t at_b = w->op.transb ? j + l * (size_t)w->b.ld : l + j * (size_t)w->b.ld;
		sum += get(w->at_a, at_a, w->a.type) * get(w->at_b, at_b, w->b.type);
	}
	return sum;
}

static float whole_sum(const struct job *w, size_t i, size_t j) {
	uint64_t k = w->op.transa ? w->a.rows : w->a.columns;
	uint32_t scheme = algorithms[w->algorithm].scheme;
	float sum = 0;
	if (scheme == CUBLASLT_REDUCTION_SCHEME_NONE)
		return sum_of(w, i, j, 0, k);
	for (uint64_t p = 0; p < PIECES; p++) {
		float piece = sum_of(w, i, j, k * p / PIECES, k * (p + 1) / PIECES);
		bool narrow = scheme != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
		sum = narrow ? rounded(sum + rounded(piece, w->d.type), w->d.type) : sum + piece;
	}
	return sum;
}

static void finish(const struct job *w, size_t i, size_t j, double x) {
	uint32_t epilogue = w->op.epilogue;
	size_t at_aux = i + j * (size_t)w->op.aux_ld;
	if (w->beta != 0)
		x += (double)w->beta * (double)get(w->at_c, i + j * (size_t)w->c.ld, w->c.type);
	if (adds_bias(epilogue))
		x += (double)get(w->op.bias, i, w->d.type);
	if (writes_aux(epilogue)) {
		put(w->op.aux, at_aux, w->d.type, (float)x);
		x = gelu(x);
	}
	if (epilogue == CUBLASLT_EPILOGUE_DGELU)
		x *= gelu_slope((double)get(w->op.aux, at_aux, w->d.type));
	put(w->at_d, i + j * (size_t)w->d.ld, w->d.type, (float)x);
}

/* Writes the sums of op(b)'s columns over k. */
static void sum_columns(const struct job *w) {
	uint64_t k = w->op.transb ? w->b.columns : w->b.rows;
	for (size_t j = 0; j < w->d.columns; j++) {
		float sum = 0;
		for (size_t l = 0; l < k; l++)
			sum += get(w->at_b, w->op.transb ? j + l * (size_t)w->b.ld : l + j * (size_t)w->b.ld, w->b.type);
		put(w->op.bias, j, w->d.type, sum);
	}
}

static void run(const void *arg) {
	const struct job *w = arg;
	if (w->op.epilogue == CUBLASLT_EPILOGUE_BGRADB)
		sum_columns(w);
	for (size_t j = 0; j < w->d.columns; j++)
		for (size_t i = 0; i < w->d.rows; i++)
			finish(w, i, j, (double)(w->alpha * whole_sum(w, i, j)));
}

/* What only the run finds out. */
static cublasStatus_t check_run(const struct job *w, const void *workspace, size_t workspace_bytes) {
	size_t alignment = options.more_alignment ? MORE_ALIGNMENT : algorithms[w->algorithm].alignment;
	size_t needed = options.more_workspace ? workspace_bytes + 1 : workspace_of(w->algorithm, &w->d);
	bool fused = w->op.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
	if (!w->at_a || !w->at_b || !w->at_c || !w->at_d || (uses_vector(w->op.epilogue) && !w->op.bias) ||
		(uses_aux(w->op.epilogue) && !w->op.aux) || (needed > 0 && !aligned(workspace, WORKSPACE_ALIGNMENT)))
		return CUBLAS_STATUS_INVALID_VALUE;
	bool refused = !aligned(w->at_a, alignment) || !aligned(w->at_b, alignment) || !aligned(w->at_c, alignment) ||
				   !aligned(w->at_d, alignment) || needed > workspace_bytes || options.refuse_runs ||
				   options.refuse_run[w->algorithm] || (options.refuse_fused_runs && fused);
	return refused ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

static void count_run(const struct job *w, bool captures) {
	counts.runs++;
	counts.runs_in_capture += captures;
	counts.fused += w->op.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
	counts.runs_of[w->algorithm]++;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t op, const void *alpha, const void *a,
							  cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
							  const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
							  cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
							  size_t workspace_bytes, cudaStream_t stream) {
	const struct problem problem = {op, a_layout, b_layout, c_layout, d_layout};
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	expect(h, HANDLE);
	cublasStatus_t s = check(&problem);
	if (algo->data[0] >= STAND_IN_ALGORITHMS)
		misuse("an algorithm that the heuristic did not offer as usable");
	if (cudaStreamIsCapturing(stream, &capture) != cudaSuccess)
		s = CUBLAS_STATUS_EXECUTION_FAILED;
	bool captures = capture != cudaStreamCaptureStatusNone;
	struct job w = {*op, *a_layout, *b_layout, *c_layout, *d_layout, a, b, c, d, 0, 0, (int)algo->data[0]};
	memcpy(&w.alpha, alpha, sizeof w.alpha);
	memcpy(&w.beta, beta, sizeof w.beta);
	if (s == CUBLAS_STATUS_SUCCESS)
		s = check_run(&w, workspace, workspace_bytes);
	if (s == CUBLAS_STATUS_SUCCESS && options.refuse_in_capture && captures)
		s = CUBLAS_STATUS_NOT_SUPPORTED;
	if (s == CUBLAS_STATUS_SUCCESS && emu_enqueue(stream, run, &w, sizeof w) != cudaSuccess)
		s = CUBLAS_STATUS_EXECUTION_FAILED;
	counts.refused += s != CUBLAS_STATUS_SUCCESS;
	if (s != CUBLAS_STATUS_SUCCESS)
		return s;
	count_run(&w, captures);
	(void)emu_spend(stream,
					options.ms[w.algorithm] + (op->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? 0 : options.epilogue_ms));
	return CUBLAS_STATUS_SUCCESS;
}
