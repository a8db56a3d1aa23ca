/* gemm_cublaslt.c: the matrix product of gemm.h by cuBLASLt.
 *
 * The library is column-major: our row-major d = op(a) op(b) is its d^T = op(b)^T op(a)^T, so its A is our b and its B
 * our a; its bias along rows is ours along columns. A shape's descriptors and its algorithm are found once and kept: of
 * the library's best guesses the one that is fastest in a trial on memory of its own. RIVULET_CUDA_DETERMINISTIC=1
 * takes the first guess, so that two processes use the same one. An epilogue that the library refuses for a shape (rows
 * that are no multiple of 16 bytes) is done by a kernel of ours behind the product. */
#include "kernels/cuda/gemm.h"

#include "base/assert.h"
#include "kernels/cuda/launch_epilogue.h"
#include "kernels/cuda/vendor/vendor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PLANS_MAX = 256,
	GUESSES = 8,
	TRIALS = 3,
	ALIGNMENT_MAX = 256,
	WORKSPACE_BYTES = 64 << 20, /* what NVIDIA advises for sm_90; 32 MiB below */
};

/* What an algorithm was chosen for. Compared as bytes: zeroed before it is filled. */
struct plan_key {
	int m, n, k, lda, ldb, ldd;
	int align_a, align_b, align_d;
	enum dtype in, out;
	enum gemm_epilogue epilogue;
	bool a_transposed, b_transposed, accumulate, bias;
};

struct plan {
	struct plan_key key;
	cublasLtMatmulDesc_t product;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algo;
	bool fused; /* the epilogue is in it */
};

struct gemm {
	const struct cublaslt_api *api;
	cublasLtHandle_t lt;
	void *workspace;
	struct plan plans[PLANS_MAX];
	int n_plans, last; /* last: where the one used last is; a step's products come in the same order every time */
	int next_out;      /* of more shapes than there is room for, whose plan makes room next */
	bool first_guess;
};

static void check(const struct gemm *g, cublasStatus_t s, const char *what) {
	if (s != CUBLAS_STATUS_SUCCESS)
		(void)fprintf(stderr, "cuda backend: %s: %s\n", what, g->api->cublasLtGetStatusString(s));
	RV_ASSERT(s == CUBLAS_STATUS_SUCCESS);
}

enum rv_err gemm_open(struct gemm **out, struct rv_errtext *et) {
	*out = NULL;
	const struct cublaslt_api *api = vendor_cublaslt(et);
	if (!api)
		return RV_E_NOTFOUND;
	struct gemm *g = calloc(1, sizeof *g);
	if (!g)
		return rv_fail(et, RV_E_NOMEM, "gemm: no memory for its handle");
	g->api = api;
	const char *fixed = getenv("RIVULET_CUDA_DETERMINISTIC");
	g->first_guess = fixed && fixed[0] == '1';
	cublasStatus_t s = api->cublasLtCreate(&g->lt);
	if (s != CUBLAS_STATUS_SUCCESS) {
		free(g);
		return rv_fail(et, RV_E_UNSUPPORTED, "cuBLASLt does not start: %s", api->cublasLtGetStatusString(s));
	}
	if (cudaMalloc(&g->workspace, WORKSPACE_BYTES) != cudaSuccess) {
		gemm_close(g);
		return rv_fail(et, RV_E_NOMEM, "no device memory for the workspace of products (%d bytes)", WORKSPACE_BYTES);
	}
	*out = g;
	return RV_OK;
}

static void plan_release(const struct gemm *g, struct plan *p) {
	(void)g->api->cublasLtMatrixLayoutDestroy(p->a);
	(void)g->api->cublasLtMatrixLayoutDestroy(p->b);
	(void)g->api->cublasLtMatrixLayoutDestroy(p->d);
	(void)g->api->cublasLtMatmulDescDestroy(p->product);
}

size_t gemm_workspace_bytes(void) {
	return WORKSPACE_BYTES;
}

void gemm_close(struct gemm *g) {
	if (!g)
		return;
	for (int i = 0; i < g->n_plans; i++)
		plan_release(g, &g->plans[i]);
	(void)cudaFree(g->workspace);
	(void)g->api->cublasLtDestroy(g->lt);
	free(g);
}

/* ---- plans ----------------------------------------------------------------------------------------------------------
 */

static int alignment_of(const void *p) {
	uintptr_t at = (uintptr_t)p;
	return at % ALIGNMENT_MAX == 0 ? ALIGNMENT_MAX : (int)(at & (~at + 1));
}

static struct plan_key key_of(const struct gemm_call *c) {
	struct plan_key k;
	memset(&k, 0, sizeof k);
	k.m = c->m;
	k.n = c->n;
	k.k = c->k;
	k.lda = c->lda;
	k.ldb = c->ldb;
	k.ldd = c->ldd;
	k.align_a = alignment_of(c->a);
	k.align_b = alignment_of(c->b);
	k.align_d = alignment_of(c->d);
	k.in = c->in;
	k.out = c->out;
	k.epilogue = c->epilogue;
	k.a_transposed = c->a_transposed;
	k.b_transposed = c->b_transposed;
	k.accumulate = c->accumulate;
	k.bias = c->bias != NULL;
	return k;
}

static cudaDataType_t type_of(enum dtype d) {
	return d == DTYPE_F32 ? CUDA_R_32F : CUDA_R_16BF;
}

static cublasLtEpilogue_t epilogue_of(const struct plan_key *k) {
	switch (k->epilogue) {
	case GEMM_PLAIN:
		return CUBLASLT_EPILOGUE_DEFAULT;
	case GEMM_BIAS:
		return CUBLASLT_EPILOGUE_BIAS;
	case GEMM_GELU:
		return k->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
	case GEMM_DGELU:
		return CUBLASLT_EPILOGUE_DGELU;
	}
	RV_UNREACHABLE("all epilogues are above");
}

static void set(const struct gemm *g, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *value,
				size_t bytes) {
	check(g, g->api->cublasLtMatmulDescSetAttribute(d, what, value, bytes), "a product's descriptor");
}

/* As it is stored: a row-major (rows, columns) matrix is a column-major (columns, rows) one. */
static cublasLtMatrixLayout_t layout(const struct gemm *g, enum dtype d, int rows, int columns, int ld) {
	cublasLtMatrixLayout_t l;
	check(g, g->api->cublasLtMatrixLayoutCreate(&l, type_of(d), (uint64_t)columns, (uint64_t)rows, ld),
		  "a matrix's layout");
	return l;
}

static void describe(const struct gemm *g, struct plan *p) {
	const struct plan_key *k = &p->key;
	const cublasOperation_t op_a = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t op_b = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	check(g, g->api->cublasLtMatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product's descriptor");
	set(g, p->product, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
	set(g, p->product, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
	p->a = k->b_transposed ? layout(g, k->in, k->n, k->k, k->ldb) : layout(g, k->in, k->k, k->n, k->ldb);
	p->b = k->a_transposed ? layout(g, k->in, k->k, k->m, k->lda) : layout(g, k->in, k->m, k->k, k->lda);
	p->d = layout(g, k->out, k->m, k->n, k->ldd);
	if (!p->fused)
		return;
	const cublasLtEpilogue_t epilogue = epilogue_of(k);
	const cudaDataType_t bias_type = type_of(k->in), aux_type = type_of(k->out);
	const int64_t aux_ld = k->ldd;
	set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
	if (k->bias)
		set(g, p->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type);
	if (k->epilogue == GEMM_GELU || k->epilogue == GEMM_DGELU) {
		set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, sizeof aux_ld);
		set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &aux_type, sizeof aux_type);
	}
}

static void prefer(const struct gemm *g, cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what,
				   int bytes) {
	const uint32_t value = (uint32_t)bytes;
	check(g, g->api->cublasLtMatmulPreferenceSetAttribute(p, what, &value, sizeof value), "a product's preferences");
}

/* The library's guesses, best first. 0: it cannot do this. */
static int guess(const struct gemm *g, const struct plan *p, cublasLtMatmulHeuristicResult_t out[GUESSES]) {
	cublasLtMatmulPreference_t preference;
	const uint64_t workspace = WORKSPACE_BYTES;
	int n = 0;
	check(g, g->api->cublasLtMatmulPreferenceCreate(&preference), "a product's preferences");
	check(g,
		  g->api->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
													   sizeof workspace),
		  "a product's preferences");
	prefer(g, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p->key.align_b);
	prefer(g, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p->key.align_a);
	prefer(g, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p->key.align_d);
	prefer(g, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p->key.align_d);
	cublasStatus_t s =
		g->api->cublasLtMatmulAlgoGetHeuristic(g->lt, p->product, p->a, p->b, p->d, p->d, preference, GUESSES, out, &n);
	(void)g->api->cublasLtMatmulPreferenceDestroy(preference);
	return s == CUBLAS_STATUS_SUCCESS ? n : 0;
}

static cublasStatus_t multiply(const struct gemm *g, const struct plan *p, cudaStream_t stream,
							   const struct gemm_call *c, void *d) {
	const float alpha = 1, beta = c->accumulate ? 1 : 0;
	return g->api->cublasLtMatmul(g->lt, p->product, &alpha, c->b, p->a, c->a, p->b, &beta, d, p->d, d, p->d, &p->algo,
								  g->workspace, WORKSPACE_BYTES, stream);
}

static void point(const struct gemm *g, const struct plan *p, const struct gemm_call *c, void *aux) {
	if (!p->fused)
		return;
	if (c->bias)
		set(g, p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &c->bias, sizeof c->bias);
	if (aux)
		set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
}

/* ---- trials ---------------------------------------------------------------------------------------------------------
 */

struct trial {
	void *d, *aux; /* of their own: a product that accumulates, or writes aux, must not do so twice */
	cudaEvent_t begin, end;
};

static bool trial_init(struct trial *t, const struct gemm_call *c) {
	size_t bytes = (size_t)c->m * (size_t)c->ldd * dtype_bytes(c->out);
	*t = (struct trial){0};
	return cudaMalloc(&t->d, bytes) == cudaSuccess &&
		   (!c->aux || (cudaMalloc(&t->aux, bytes) == cudaSuccess &&
						cudaMemcpy(t->aux, c->aux, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess)) &&
		   cudaMemset(t->d, 0, bytes) == cudaSuccess && cudaEventCreate(&t->begin) == cudaSuccess &&
		   cudaEventCreate(&t->end) == cudaSuccess;
}

static void trial_release(struct trial *t) {
	if (t->begin)
		(void)cudaEventDestroy(t->begin);
	if (t->end)
		(void)cudaEventDestroy(t->end);
	(void)cudaFree(t->d);
	(void)cudaFree(t->aux);
	(void)cudaGetLastError(); /* a refused allocation is no fault here */
}

/* Milliseconds of TRIALS products behind a first one; negative: it does not run. */
static float run_trial(const struct gemm *g, const struct plan *p, cudaStream_t stream, const struct gemm_call *c,
					   const struct trial *t) {
	float ms = -1;
	point(g, p, c, t->aux);
	bool ok = multiply(g, p, stream, c, t->d) == CUBLAS_STATUS_SUCCESS;
	(void)cudaEventRecord(t->begin, stream);
	for (int i = 0; ok && i < TRIALS; i++)
		ok = multiply(g, p, stream, c, t->d) == CUBLAS_STATUS_SUCCESS;
	(void)cudaEventRecord(t->end, stream);
	if (cudaEventSynchronize(t->end) != cudaSuccess || !ok ||
		cudaEventElapsedTime(&ms, t->begin, t->end) != cudaSuccess)
		return -1;
	return ms;
}

static void choose(const struct gemm *g, struct plan *p, cudaStream_t stream, const struct gemm_call *c,
				   const cublasLtMatmulHeuristicResult_t *guesses, int n) {
	struct trial t;
	float best_ms = -1;
	cublasLtMatmulAlgo_t best = p->algo = guesses[0].algo;
	if (n > 1 && !g->first_guess && trial_init(&t, c)) {
		for (int i = 0; i < n; i++) {
			p->algo = guesses[i].algo;
			float ms = run_trial(g, p, stream, c, &t);
			if (ms >= 0 && (best_ms < 0 || ms < best_ms)) {
				best_ms = ms;
				best = p->algo;
			}
		}
		trial_release(&t);
	} else if (n > 1 && !g->first_guess)
		trial_release(&t);
	p->algo = best;
}

/* A model has some tens of shapes; batches of many sizes may make more. What is under way does not need its plan any
 * more. */
static struct plan *place_for_plan(struct gemm *g) {
	if (g->n_plans < PLANS_MAX) {
		g->last = g->n_plans++;
	} else {
		g->last = g->next_out;
		g->next_out = (g->next_out + 1) % PLANS_MAX;
		plan_release(g, &g->plans[g->last]);
	}
	return &g->plans[g->last];
}

static struct plan *make_plan(struct gemm *g, cudaStream_t stream, const struct gemm_call *c,
							  const struct plan_key *key) {
	cublasLtMatmulHeuristicResult_t guesses[GUESSES];
	struct plan *p = place_for_plan(g);
	*p = (struct plan){.key = *key, .fused = true};
	describe(g, p);
	int n = guess(g, p, guesses);
	if (n == 0 && key->epilogue != GEMM_PLAIN) {
		plan_release(g, p);
		*p = (struct plan){.key = *key};
		describe(g, p);
		n = guess(g, p, guesses);
	}
	if (n == 0)
		(void)fprintf(stderr, "cuda backend: cuBLASLt has no product for m %d n %d k %d\n", key->m, key->n, key->k);
	RV_ASSERT(n > 0);
	choose(g, p, stream, c, guesses, n);
	return p;
}

static struct plan *find_plan(struct gemm *g, const struct plan_key *key) {
	for (int i = 1; i <= g->n_plans; i++) {
		int at = (g->last + i) % g->n_plans;
		if (memcmp(&g->plans[at].key, key, sizeof *key) == 0) {
			g->last = at;
			return &g->plans[at];
		}
	}
	return NULL;
}

bool gemm_run(struct gemm *g, cudaStream_t stream, const struct gemm_call *c) {
	const struct plan_key key = key_of(c);
	const struct plan *p = find_plan(g, &key);
	if (!p && cuda_captures(stream))
		return false;
	if (!p)
		p = make_plan(g, stream, c, &key);
	bool by_kernel = !p->fused && c->epilogue != GEMM_PLAIN;
	void *d = by_kernel && c->epilogue == GEMM_GELU ? c->aux : c->d;
	point(g, p, c, c->aux);
	cublasStatus_t s = multiply(g, p, stream, c, d);
	if (s == CUBLAS_STATUS_SUCCESS || !cuda_capture_is_spoilt(stream))
		check(g, s, "a product");
	if (by_kernel)
		launch_epilogue(stream, c);
	return true;
}
