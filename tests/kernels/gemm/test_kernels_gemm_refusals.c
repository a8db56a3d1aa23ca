/* test_kernels_gemm_refusals.c: whatever cuBLASLt (a stand-in) refuses, at whatever point, products
 * are right, the library's text is logged once, and nothing is chosen while a stream captures; a
 * broken device is a fault. */
#include "kernels/cuda/cuda_backend.h"
#include "tests/common/check.h"
#include "tests/emu/runtime.h"
#include "tests/kernels/emu/child.h"
#include "tests/kernels/gemm/cublaslt_stand_in.h"
#include "tests/kernels/gemm/product.h"
#include "tests/kernels/gemm/vendor_stand_in.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- refusals ---- */

enum { LINES_MAX = 3 };

struct refusal {
	const char *name;
	struct cublaslt_stand_in_options options;
	bool missing;                 /* the library */
	bool runs;                    /* something is left to the library in the end */
	bool fused;                   /* epilogues too */
	int no_trials_for;            /* this many allocations fail once the products begin */
	const char *lines[LINES_MAX]; /* what is logged, each once, and no more */
};

#define NOT_SUPPORTED "the functionality requested is not supported"
#define NO_EPILOGUE   "does the epilogue: " NOT_SUPPORTED
#define NO_PRODUCT    "a kernel of our own does it, slower: " NOT_SUPPORTED

static const struct refusal refusals[] = {
	{.name = "nothing", .runs = true, .fused = true},
	{.name = "fused guesses", .options = {.refuse_fused_guesses = true}, .runs = true, .lines = {NO_EPILOGUE}},
	{.name = "fused runs", .options = {.refuse_fused_runs = true}, .runs = true, .lines = {NO_EPILOGUE}},
	{.name = "fused runs, untried",
	 .options = {.refuse_fused_runs = true},
	 .no_trials_for = 100,
	 .runs = true,
	 .lines = {NO_EPILOGUE}},
	{.name = "guesses", .options = {.refuse_guesses = true}, .lines = {NO_EPILOGUE, NO_PRODUCT}},
	{.name = "runs", .options = {.refuse_runs = true}, .lines = {NO_EPILOGUE, NO_PRODUCT}},
	{.name = "runs, untried",
	 .options = {.refuse_runs = true},
	 .no_trials_for = 100,
	 .lines = {NO_EPILOGUE, NO_PRODUCT}},
	{.name = "the first guess", .options = {.refuse_run = {[STAND_IN_VECTORS] = true}}, .runs = true, .fused = true},
	{.name = "the first guess, untried",
	 .options = {.refuse_run = {[STAND_IN_VECTORS] = true}},
	 .no_trials_for = 100,
	 .runs = true,
	 .fused = true},
	{.name = "a guess that is none", .options = {.unusable_guesses = true}, .runs = true, .fused = true},
	{.name = "more alignment than said", .options = {.more_alignment = true}, .lines = {NO_EPILOGUE, NO_PRODUCT}},
	{.name = "more workspace than said", .options = {.more_workspace = true}, .lines = {NO_EPILOGUE, NO_PRODUCT}},
	{.name = "descriptors",
	 .options = {.fail_descriptors = true},
	 .lines = {"does the epilogue: the resource allocation failed", "slower: the resource allocation failed"}},
	{.name = "the start",
	 .options = {.fail_start = true},
	 .lines = {"cuBLASLt does not start: the library was not initialized; a kernel of our own multiplies"}},
	{.name = "being there",
	 .missing = true,
	 .lines = {"libcublasLt.so.13: there is no such file; a kernel of our own"}},
};

/* Three rounds of products of all epilogues and shapes with and without vectors. */
static int run_products(const void *ctx) {
	const struct refusal *r = ctx;
	cudaStream_t stream;
	struct gemm *g;
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		return 1;
	cublaslt_stand_in_reset(&r->options);
	vendor_stand_in_missing(r->missing);
	if (gemm_open(&g, NULL) != RV_OK)
		return 1;
	for (int i = 0; i < 3 * 10; i++) {
		struct product_case p;
		const enum gemm_epilogue epilogue = (enum gemm_epilogue)(i % 5);
		const enum dtype type = i % 20 < 10 ? DTYPE_F32 : DTYPE_BF16;
		const bool sums = epilogue == GEMM_SUMS;
		const struct product_kind k = {.m = 24 + i % 10 / 5,
									   .n = 16,
									   .k = 40,
									   .padding = 8,
									   .bias = epilogue == GEMM_BIAS || epilogue == GEMM_GELU,
									   .in = type,
									   .out = sums ? DTYPE_F32 : type,
									   .a_transposed = sums,
									   .accumulate = sums || epilogue == GEMM_PLAIN,
									   .epilogue = epilogue};
		product_init(&p, &k);
		emu_refuse(EMU_MALLOC, cudaErrorMemoryAllocation, r->no_trials_for);
		bool done = gemm_run(g, stream, &p.call);
		emu_refuse(EMU_MALLOC, cudaSuccess, 0);
		product_check(&p, stream);
		product_release(&p);
		if (!done)
			return 2;
	}
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	gemm_close(g);
	return (c.runs > 0) == r->runs && (c.fused > 0) == r->fused && cublaslt_stand_in_count().objects == 0 ? 0 : 3;
}

static void test_products_are_right_whatever_is_refused(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const struct refusal *r = &refusals[i];
		struct child_outcome o = child_run(run_products, r);
		int lines = 0;
		if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != 0)
			fail_msg("%s: status %d: %s", r->name, o.status, o.text);
		for (; lines < LINES_MAX && r->lines[lines]; lines++)
			if (child_count(o.text, r->lines[lines]) != 1)
				fail_msg("%s: not once \"%s\": %s", r->name, r->lines[lines], o.text);
		if (child_count(o.text, "\n") != lines)
			fail_msg("%s: more than %d lines: %s", r->name, lines, o.text);
	}
}

/* ---- captures ---- */

enum { N = 32, TOKENS = 4 };

/* A pass that adds one to y and multiplies: c = a b, of rows that depend on how often it was called
 * before. */
struct multiplying {
	struct backend *be;
	float *a, *b, *c, *y;
	int calls;
	int larger_at; /* the call from which on it multiplies more rows */
};

static void multiply(void *ctx) {
	struct multiplying *m = ctx;
	m->calls++;
	const struct product_shape s = {.m = m->calls >= m->larger_at ? N : N / 2, .n = N, .k = N};
	m->be->ops->product(m->be, m->c, m->a, m->b, s);
	m->be->ops->add_scaled(m->be, m->y, 1, 1, m->b, NULL, N * N);
}

static void multiplying_init(struct multiplying *m, const struct cublaslt_stand_in_options *o) {
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32};
	static float ones[N * N];
	for (int i = 0; i < N * N; i++)
		ones[i] = 1;
	*m = (struct multiplying){.larger_at = 1000};
	(void)setenv("RIVULET_CUDA_GRAPHS", "1", 1);
	cublaslt_stand_in_reset(o);
	assert_int_equal(cuda_ops.open(&opt, &m->be, NULL), RV_OK);
	float **arrays[] = {&m->a, &m->b, &m->c, &m->y};
	for (int i = 0; i < 4; i++)
		assert_int_equal(m->be->ops->alloc(m->be, sizeof ones, (void **)arrays[i], NULL), RV_OK);
	m->be->ops->upload(m->be, m->a, ones, sizeof ones);
	m->be->ops->upload(m->be, m->b, ones, sizeof ones);
}

static void steps(struct multiplying *m, int n) {
	static const int32_t tokens[TOKENS] = {0};
	const struct micro_batch batch = {
		.tokens = tokens, .targets = tokens, .b = 1, .t = TOKENS, .grad_scale = 1, .owner = m, .only_enqueues = true};
	for (int i = 0; i < n; i++)
		m->be->ops->micro_step(m->be, &batch, multiply, m);
}

/* Whether y was added to `n` times, and the product has `rows` rows. */
static bool is_right(struct multiplying *m, int n, int rows) {
	float y[N * N], c[N * N];
	m->be->ops->download(m->be, y, m->y, sizeof y);
	m->be->ops->download(m->be, c, m->c, sizeof c);
	for (int i = 0; i < N * N; i++)
		if (y[i] != (float)n || c[i] != (i < rows * N ? (float)N : 0))
			return false;
	return true;
}

/* A product of a new shape comes in the pass that is captured. */
static int new_shape_in_a_capture(const void *ctx) {
	struct multiplying m;
	(void)ctx;
	multiplying_init(&m, NULL);
	m.larger_at = 2;
	uint64_t before = emu_count().graph_launches;
	steps(&m, 6);
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	uint64_t graphs = emu_count().graph_launches - before;
	bool right = is_right(&m, 6, N);
	m.be->ops->close(m.be);
	(void)fprintf(stderr, "queries %d, %d in captures; %d runs in captures; %d calls, %d graphs\n", c.queries,
				  c.queries_in_capture, c.runs_in_capture, m.calls, (int)graphs);
	/* Calls: plain, captured in vain, plain, captured. The one run in a capture is the graph's
	 * own. */
	return right && c.queries == 2 && c.queries_in_capture == 0 && c.runs_in_capture == 1 && m.calls == 4 && graphs == 4
			   ? 0
			   : 1;
}

static void test_nothing_is_chosen_in_a_capture(void **state) {
	(void)state;
	struct child_outcome o = child_run(new_shape_in_a_capture, NULL);
	if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != 0)
		fail_msg("status %d: %s", o.status, o.text);
	assert_int_equal(child_count(o.text, "a product in it has no algorithm yet"), 1);
}

/* Without a backend: gemm_run enqueues nothing and allocates nothing, and runs the same call
 * later. */
static void test_gemm_run_refuses_in_a_capture(void **state) {
	(void)state;
	struct product_case p;
	struct gemm *g;
	cudaStream_t stream;
	cudaGraph_t graph;
	cublaslt_stand_in_reset(NULL);
	assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	assert_int_equal(gemm_open(&g, NULL), RV_OK);
	product_init(&p, &(struct product_kind){.m = 8, .n = 8, .k = 8});
	uint64_t allocations = emu_count().allocations;
	assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
	assert_false(gemm_run(g, stream, &p.call));
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
	assert_int_equal(emu_count().allocations, allocations);
	assert_int_equal(cublaslt_stand_in_count().queries + cublaslt_stand_in_count().runs, 0);
	assert_true(gemm_run(g, stream, &p.call));
	product_check(&p, stream);
	product_release(&p);
	gemm_close(g);
}

/* A library that refuses every product in a capture, and works outside of one. */
static int refused_in_captures(const void *ctx) {
	struct multiplying m;
	(void)ctx;
	multiplying_init(&m, &(struct cublaslt_stand_in_options){.refuse_in_capture = true});
	uint64_t before = emu_count().graph_launches;
	steps(&m, 5);
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	bool right = is_right(&m, 5, N / 2) && emu_count().graph_launches == before;
	m.be->ops->close(m.be);
	return right && c.queries == 1 && c.refused == 2 && m.calls == 7 ? 0 : 1;
}

static void test_a_library_that_refuses_in_captures(void **state) {
	(void)state;
	struct child_outcome o = child_run(refused_in_captures, NULL);
	if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != 0)
		fail_msg("status %d: %s", o.status, o.text);
	assert_int_equal(child_count(o.text, "plain launches: " NOT_SUPPORTED), 1);
	assert_int_equal(child_count(o.text, "steps run without CUDA graphs from here on"), 1);
	assert_int_equal(child_count(o.text, "\n"), 3);
}

/* ---- a broken device ---- */

enum { BREAK_BEFORE_PLAN, BREAK_BEFORE_RUN, BREAK_OWN, BREAKS };

static int break_the_device(const void *ctx) {
	const int when = *(const int *)ctx;
	struct product_case p;
	struct gemm *g;
	cudaStream_t stream;
	const struct cublaslt_stand_in_options own = {.refuse_guesses = when == BREAK_OWN};
	cublaslt_stand_in_reset(&own);
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess || gemm_open(&g, NULL) != RV_OK)
		return 1;
	product_init(&p, &(struct product_kind){.m = 8, .n = 8, .k = 8, .epilogue = GEMM_BIAS, .bias = true});
	if (when != BREAK_BEFORE_PLAN)
		(void)gemm_run(g, stream, &p.call);
	emu_break(cudaErrorIllegalAddress);
	(void)gemm_run(g, stream, &p.call);
	return 0;
}

static void test_a_broken_device_is_a_fault(void **state) {
	(void)state;
	for (int when = 0; when < BREAKS; when++) {
		struct child_outcome o = child_run(break_the_device, &when);
		assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
		assert_non_null(strstr(o.text, "an illegal memory access was encountered"));
		assert_int_equal(child_count(o.text, "refuses"), when == BREAK_OWN ? 2 : 0);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products_are_right_whatever_is_refused),
		cmocka_unit_test(test_nothing_is_chosen_in_a_capture),
		cmocka_unit_test(test_gemm_run_refuses_in_a_capture),
		cmocka_unit_test(test_a_library_that_refuses_in_captures),
		cmocka_unit_test(test_a_broken_device_is_a_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
