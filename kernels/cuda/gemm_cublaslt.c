/* gemm_cublaslt.c: the matrix product of gemm.h by cuBLASLt, and the fallbacks if cuBLASLt refuses.
 *
 * Choice    a shape's descriptors and its algorithm are found once and kept: the fastest of the
 *           library's best guesses, with the epilogue fused and as a kernel of ours behind the
 *           product, in a trial on memory of its own. RIVULET_CUDA_DETERMINISTIC=1, or no memory
 *           for a trial: the first guess that runs, fused before unfused, so that two processes use
 *           the same one.
 * Refusals  an algorithm that the library refuses when it runs gives way to the next guess; when
 *           none is left the plan is made again unfused; when the library has nothing at all, or is
 *           missing, a kernel of our own (product.cu) computes the product. A refusal has enqueued
 *           nothing, so nothing is done twice. Each kind is logged once for each device, with the
 *           library's text for it.
 * Faults    a device on which everything fails (a CUDA error that does not go away) is not taken
 *           for a refusal: it ends the process, with CUDA's text.
 * Captures  while a stream captures nothing is chosen: no query, no trial, no allocation. */
#include "kernels/cuda/gemm.h"

#include "base/assert.h"
#include "kernels/cuda/gemm_plan.h"
#include "kernels/cuda/launch_product.h"
#include "kernels/cuda/vendor/vendor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS_MAX = 256, TRIALS = 3 };

enum refusal { REFUSED_FUSED, REFUSED_ALL, REFUSED_CAPTURE, REFUSALS };

struct gemm {
	struct gemm_library lib;
	struct gemm_plan plans[PLANS_MAX];
	int n_plans, last; /* last: the most recently used; a step's products come in the same order every time */
	int next_out;      /* the plan to replace next when all are used */
	bool first_guess;
	bool logged[REFUSALS];
};

/* Starts the library. Without it g->lib.api is NULL and all products are our own: `why` names what
 * is missing. */
static void start(struct gemm *g, struct rv_errtext *why) {
	const struct cublaslt_api *api = vendor_cublaslt(why);
	cublasStatus_t s = api ? api->cublasLtCreate(&g->lib.handle) : CUBLAS_STATUS_SUCCESS;
	if (s != CUBLAS_STATUS_SUCCESS)
		(void)rv_fail(why, RV_E_UNSUPPORTED, "cuBLASLt does not start: %s", api->cublasLtGetStatusString(s));
	g->lib.api = s == CUBLAS_STATUS_SUCCESS ? api : NULL;
	if (!g->lib.api)
		(void)fprintf(stderr, "cuda backend: %s; a kernel of our own multiplies matrices, slower\n", why->text);
}

enum rv_err gemm_open(struct gemm **out, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	const char *fixed = getenv("RIVULET_CUDA_DETERMINISTIC");
	*out = NULL;
	struct gemm *g = calloc(1, sizeof *g);
	if (!g)
		return rv_fail(et, RV_E_NOMEM, "gemm: no memory for its handle");
	g->first_guess = fixed && fixed[0] == '1';
	start(g, &why);
	if (g->lib.api && cudaMalloc(&g->lib.workspace, GEMM_WORKSPACE_BYTES) != cudaSuccess) {
		(void)cudaGetLastError();
		gemm_close(g);
		return rv_fail(et, RV_E_NOMEM, "no device memory for the workspace of products (%d bytes)",
					   GEMM_WORKSPACE_BYTES);
	}
	*out = g;
	return RV_OK;
}

size_t gemm_workspace_bytes(void) {
	return GEMM_WORKSPACE_BYTES;
}

void gemm_close(struct gemm *g) {
	if (!g)
		return;
	for (int i = 0; i < g->n_plans; i++)
		gemm_plan_release(&g->lib, &g->plans[i]);
	(void)cudaFree(g->lib.workspace);
	if (g->lib.api)
		(void)g->lib.api->cublasLtDestroy(g->lib.handle);
	free(g);
}

/* Logs the first refusal of its kind. */
static void log_refusal(struct gemm *g, enum refusal kind, const struct gemm_key *k, cublasStatus_t s) {
	static const char *const what[REFUSALS] = {
		[REFUSED_FUSED] = "with its epilogue; a kernel of ours does the epilogue",
		[REFUSED_ALL] = "altogether; a kernel of our own does it, slower",
		[REFUSED_CAPTURE] = "while a stream captures; the micro-batch runs as plain launches"};
	if (g->logged[kind])
		return;
	g->logged[kind] = true;
	(void)fprintf(
		stderr, "cuda backend: cuBLASLt refuses a product (m %d, n %d, k %d, %s) %s: %s. More are not logged.\n", k->m,
		k->n, k->k, k->in == DTYPE_F32 ? "fp32" : "bf16", what[kind], g->lib.api->cublasLtGetStatusString(s));
}

/* Asserts that the device works: a broken one would refuse for ever. */
static void check_device(cudaStream_t stream, const char *after) {
	cudaError_t e = cuda_device_fault(stream);
	if (e != cudaSuccess)
		(void)fprintf(stderr, "cuda backend: %s: %s\n", after, cudaGetErrorString(e));
	RV_ASSERT(e == cudaSuccess);
}

/* ---- trials ---- */

struct trial {
	struct gemm_call call; /* d, aux and row_sums are its own, if written: nothing is accumulated twice */
	void *d, *aux, *row_sums;
	cudaEvent_t begin, end;
};

static bool trial_init(struct trial *t, cudaStream_t stream, const struct gemm_call *c) {
	size_t bytes = (size_t)c->m * (size_t)c->ldd * dtype_bytes(c->out), sums_bytes = (size_t)c->m * sizeof(float);
	bool writes_aux = c->epilogue == GEMM_GELU, sums = c->epilogue == GEMM_SUMS;
	*t = (struct trial){.call = *c};
	if (cudaMalloc(&t->d, bytes) != cudaSuccess || (writes_aux && cudaMalloc(&t->aux, bytes) != cudaSuccess) ||
		(sums && cudaMalloc(&t->row_sums, sums_bytes) != cudaSuccess) ||
		cudaMemsetAsync(t->d, 0, bytes, stream) != cudaSuccess ||
		(sums && cudaMemsetAsync(t->row_sums, 0, sums_bytes, stream) != cudaSuccess) ||
		cudaEventCreateWithFlags(&t->begin, cudaEventBlockingSync) != cudaSuccess ||
		cudaEventCreateWithFlags(&t->end, cudaEventBlockingSync) != cudaSuccess)
		return false;
	t->call.d = t->d;
	t->call.aux = writes_aux ? t->aux : c->aux;
	t->call.row_sums = t->row_sums;
	return true;
}

static void trial_release(struct trial *t) {
	if (t->begin)
		(void)cudaEventDestroy(t->begin);
	if (t->end)
		(void)cudaEventDestroy(t->end);
	(void)cudaFree(t->d);
	(void)cudaFree(t->aux);
	(void)cudaFree(t->row_sums);
	(void)cudaGetLastError(); /* a refused allocation is no fault here */
}

/* Returns the milliseconds of TRIALS products behind a first one; negative: the algorithm does not
 * run, with the reason in *s. */
static float run_trial(const struct gemm *g, const struct gemm_plan *p, cudaStream_t stream, const struct trial *t,
					   cublasStatus_t *s) {
	float ms = -1;
	cublasStatus_t refused = gemm_plan_run(&g->lib, p, stream, &t->call);
	(void)cudaEventRecord(t->begin, stream);
	for (int i = 0; refused == CUBLAS_STATUS_SUCCESS && i < TRIALS; i++)
		refused = gemm_plan_run(&g->lib, p, stream, &t->call);
	(void)cudaEventRecord(t->end, stream);
	if (refused != CUBLAS_STATUS_SUCCESS)
		*s = refused;
	bool ran = cudaEventSynchronize(t->end) == cudaSuccess && refused == CUBLAS_STATUS_SUCCESS;
	return ran && cudaEventElapsedTime(&ms, t->begin, t->end) == cudaSuccess ? ms : -1;
}

/* Puts the plan's algorithms in the order of their times and drops those that do not run. Returns
 * the least time in ms; negative: none runs, with the reason in *s. */
static float rank(const struct gemm *g, struct gemm_plan *p, cudaStream_t stream, const struct trial *t,
				  cublasStatus_t *s) {
	float times[GEMM_GUESSES];
	cublasLtMatmulAlgo_t algos[GEMM_GUESSES];
	int n = 0;
	for (p->at = 0; p->at < p->n_algos; p->at++) {
		float ms = run_trial(g, p, stream, t, s);
		int i = n;
		for (; ms >= 0 && i > 0 && ms < times[i - 1]; i--) {
			times[i] = times[i - 1];
			algos[i] = algos[i - 1];
		}
		if (ms < 0)
			continue;
		times[i] = ms;
		algos[i] = p->algos[p->at];
		n++;
	}
	memcpy(p->algos, algos, (size_t)n * sizeof *algos);
	p->n_algos = n;
	p->at = 0;
	return n > 0 ? times[0] : -1;
}

/* ---- plans ---- */

/* Makes the plan anew in the next form: fused, unfused, our own. `s`: why the previous one was
 * refused. */
static void make_next_form(struct gemm *g, struct gemm_plan *p, const struct gemm_call *c, cublasStatus_t s) {
	const struct gemm_key key = p->key;
	bool was_fused = p->form == GEMM_FUSED;
	gemm_plan_release(&g->lib, p);
	p->form = GEMM_OWN;
	if (was_fused) {
		log_refusal(g, REFUSED_FUSED, &key, s);
		s = gemm_plan_make(&g->lib, p, c, GEMM_UNFUSED);
	}
	if (p->form == GEMM_OWN)
		log_refusal(g, REFUSED_ALL, &key, s);
}

/* Ranks the plan's algorithms; if none runs, goes on with the next form. Returns its time, negative
 * for our own. */
static float rank_or_next(struct gemm *g, struct gemm_plan *p, cudaStream_t stream, const struct trial *t) {
	float ms = -1;
	while (p->form != GEMM_OWN) {
		cublasStatus_t s = CUBLAS_STATUS_NOT_SUPPORTED;
		ms = rank(g, p, stream, t, &s);
		if (ms >= 0)
			break;
		check_device(stream, "a trial of a product");
		make_next_form(g, p, &t->call, s);
	}
	return ms;
}

/* Takes the fastest algorithm of p's form, or of the unfused one if p is fused. */
static void choose(struct gemm *g, struct gemm_plan *p, cudaStream_t stream, const struct gemm_call *c) {
	struct trial t;
	struct gemm_plan other;
	if (trial_init(&t, stream, c)) {
		float ms = rank_or_next(g, p, stream, &t), other_ms = -1;
		cublasStatus_t s;
		if (p->form == GEMM_FUSED && gemm_plan_make(&g->lib, &other, c, GEMM_UNFUSED) == CUBLAS_STATUS_SUCCESS) {
			other_ms = rank(g, &other, stream, &t, &s);
			bool faster = other_ms >= 0 && other_ms < ms;
			gemm_plan_release(&g->lib, faster ? p : &other);
			*p = faster ? other : *p;
		}
	}
	trial_release(&t);
}

/* Returns a place for one more plan. A model has some tens of shapes; batches of many sizes may
 * make more. Work that is enqueued no longer needs its plan. */
static struct gemm_plan *place_for_plan(struct gemm *g) {
	if (g->n_plans < PLANS_MAX) {
		g->last = g->n_plans++;
	} else {
		g->last = g->next_out;
		g->next_out = (g->next_out + 1) % PLANS_MAX;
		gemm_plan_release(&g->lib, &g->plans[g->last]);
	}
	return &g->plans[g->last];
}

static struct gemm_plan *make_plan(struct gemm *g, cudaStream_t stream, const struct gemm_call *c) {
	const struct gemm_key key = gemm_key_of(c);
	struct gemm_plan *p = place_for_plan(g);
	bool fused = c->epilogue != GEMM_PLAIN && key.epilogue_aligned;
	cublasStatus_t s = gemm_plan_make(&g->lib, p, c, fused ? GEMM_FUSED : GEMM_UNFUSED);
	if (s != CUBLAS_STATUS_SUCCESS) {
		check_device(stream, "a query for a product");
		p->form = fused ? GEMM_FUSED : GEMM_UNFUSED;
		make_next_form(g, p, c, s);
	}
	if (p->form != GEMM_OWN && !g->first_guess)
		choose(g, p, stream, c);
	return p;
}

static struct gemm_plan *find_plan(struct gemm *g, const struct gemm_key *key) {
	for (int i = 1; i <= g->n_plans; i++) {
		int at = (g->last + i) % g->n_plans;
		if (memcmp(&g->plans[at].key, key, sizeof *key) == 0) {
			g->last = at;
			return &g->plans[at];
		}
	}
	return NULL;
}

/* Enqueues c by its plan, which changes until something accepts it. Returns false if the stream
 * captures and the library refuses what it does at other times; the plan stays. */
static bool run_plan(struct gemm *g, struct gemm_plan *p, cudaStream_t stream, const struct gemm_call *c) {
	while (p->form != GEMM_OWN) {
		cublasStatus_t s = gemm_plan_run(&g->lib, p, stream, c);
		if (s == CUBLAS_STATUS_SUCCESS)
			return true;
		if (cuda_captures(stream)) {
			if (!cuda_capture_is_spoilt(stream))
				log_refusal(g, REFUSED_CAPTURE, &p->key, s);
			return false;
		}
		check_device(stream, "a product");
		if (++p->at == p->n_algos)
			make_next_form(g, p, c, s);
	}
	launch_product(stream, c);
	return true;
}

bool gemm_run(struct gemm *g, cudaStream_t stream, const struct gemm_call *c) {
	if (!g->lib.api) {
		launch_product(stream, c);
		return true;
	}
	const struct gemm_key key = gemm_key_of(c);
	struct gemm_plan *p = find_plan(g, &key);
	if (!p && cuda_captures(stream))
		return false;
	return run_plan(g, p ? p : make_plan(g, stream, c), stream, c);
}
