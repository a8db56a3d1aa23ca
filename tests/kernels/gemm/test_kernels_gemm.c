/* test_kernels_gemm.c: matrix products by gemm_cublaslt.c on a stand-in for cuBLASLt, and by our
 * own kernel, against fp64: layouts, types, epilogues, alignments; and which of the library's
 * algorithms is taken. */
#include "kernels/cuda/launch_product.h"
#include "tests/common/check.h"
#include "tests/emu/runtime.h"
#include "tests/kernels/gemm/cublaslt_stand_in.h"
#include "tests/kernels/gemm/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cudaStream_t stream;

static int make_stream(void **state) {
	(void)state;
	return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

static struct gemm *open_with(const struct cublaslt_stand_in_options *o) {
	struct gemm *g;
	cublaslt_stand_in_reset(o);
	assert_int_equal(gemm_open(&g, NULL), RV_OK);
	return g;
}

static void close_all(struct gemm *g) {
	gemm_close(g);
	assert_int_equal(cublaslt_stand_in_count().objects, 0);
}

/* ---- every kind of product ---- */

static const int shapes[][3] = {{8, 16, 24}, {5, 8, 16}, {7, 9, 3}, {1, 1, 1}, {33, 40, 17}, {16, 129, 8}, {3, 64, 70}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], VARIANTS = 2 * 2 * 5 * 2 * 3 * 2 * 2 };

/* Of a shape's variants, those that are run; every variant is run with some shape. */
#ifdef __SANITIZE_ADDRESS__ /* a fiber costs ten times as much */
enum { EVERY = 3 };
#else
enum { EVERY = 1 };
#endif

/* Variant v of shape i; returns false where there is no such product. */
static bool kind_of(struct product_kind *k, int i, int v) {
	static const enum dtype types[][2] = {{DTYPE_F32, DTYPE_F32}, {DTYPE_BF16, DTYPE_F32}, {DTYPE_BF16, DTYPE_BF16}};
	*k = (struct product_kind){.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
	k->a_transposed = v & 1;
	k->b_transposed = v >> 1 & 1;
	k->padding = v >> 2 & 1 ? 8 : 0;
	k->epilogue = (enum gemm_epilogue)((v >> 3) % 5);
	v = (v >> 3) / 5;
	k->in = types[v % 3][0];
	k->out = types[v % 3][1];
	bool other = v / 3 & 1, sums = k->epilogue == GEMM_SUMS;
	k->shift = v / 6 & 1;
	k->accumulate = other && (sums || k->epilogue == GEMM_PLAIN);
	k->bias = k->epilogue == GEMM_BIAS || (k->epilogue == GEMM_GELU && other);
	k->shift_epilogue = k->shift && other;
	if (sums)
		return k->a_transposed && !k->b_transposed && k->out == DTYPE_F32;
	return k->epilogue == GEMM_PLAIN || k->in == k->out;
}

/* The number of products. */
static int run_all_kinds(struct gemm *g) {
	struct product_kind k;
	int n = 0;
	for (int i = 0; i < SHAPES; i++)
		for (int v = 0; v < VARIANTS; v++)
			if ((i + v) % EVERY == 0 && kind_of(&k, i, v)) {
				product_run(g, stream, &k);
				n++;
			}
	return n;
}

static void test_all_kinds_by_the_library(void **state) {
	(void)state;
	struct gemm *g = open_with(NULL);
	int n = run_all_kinds(g);
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	close_all(g);
	print_message("%d products, %d runs of the library, %d with a fused epilogue\n", n, c.runs, c.fused);
	assert_true(n > 900 / EVERY && c.fused > 300 / EVERY && c.refused == 0);
	assert_int_equal(c.runs_of[STAND_IN_INPLACE] + c.runs_of[STAND_IN_OUTPUT_TYPE], 0);
	assert_true(c.runs_of[STAND_IN_VECTORS] > 0 && c.runs_of[STAND_IN_COMPUTE_TYPE] > 0 &&
				c.runs_of[STAND_IN_ELEMENTS] > 0);
}

static void test_all_kinds_on_lazy_streams(void **state) {
	(void)state;
	struct gemm *g = open_with(NULL);
	emu_configure(&(struct emu_options){.streams = EMU_LAZY});
	assert_true(run_all_kinds(g) > 900 / EVERY);
	emu_configure(&(struct emu_options){.streams = EMU_EAGER});
	close_all(g);
}

static void test_all_kinds_with_epilogues_of_ours(void **state) {
	(void)state;
	struct gemm *g = open_with(&(struct cublaslt_stand_in_options){.refuse_fused_guesses = true});
	(void)run_all_kinds(g);
	assert_int_equal(cublaslt_stand_in_count().fused, 0);
	close_all(g);
}

static void test_all_kinds_by_our_own_kernel(void **state) {
	(void)state;
	struct product_case p;
	struct product_kind k;
	for (int i = 0; i < SHAPES; i++)
		for (int v = 0; v < VARIANTS; v++) {
			if (!kind_of(&k, i, v) || (i + v) % (2 * EVERY) != 1) /* half of them: fibers take time */
				continue;
			product_init(&p, &k);
			launch_product(stream, &p.call);
			product_check(&p, stream);
			product_release(&p);
		}
}

/* Several tiles, and ends inside of them. */
static void test_large_products_by_our_own_kernel(void **state) {
	(void)state;
	for (int v = 0; v < 4; v++) {
		const struct product_kind k = {.m = 130, .n = 67, .k = 33, .a_transposed = v & 1, .b_transposed = v >> 1};
		struct product_case p;
		product_init(&p, &k);
		launch_product(stream, &p.call);
		product_check(&p, stream);
		product_release(&p);
	}
}

/* ---- plans ---- */

/* Pointers that are aligned to 16 bytes or more share a plan; less aligned ones have plans of their
 * own. */
static void test_plans_are_kept_by_16_byte_alignment(void **state) {
	(void)state;
	struct gemm *g = open_with(NULL);
	for (int shift = 0; shift <= 64; shift += 4) /* floats: 0, 16, 32 ... 256 bytes */
		product_run(g, stream, &(struct product_kind){.m = 16, .n = 8, .k = 8, .shift = shift});
	assert_int_equal(cublaslt_stand_in_count().queries, 1);
	for (int shift = 1; shift <= 3; shift++) /* 4, 8 and 12 bytes: the last as the first */
		product_run(g, stream, &(struct product_kind){.m = 16, .n = 8, .k = 8, .shift = shift});
	assert_int_equal(cublaslt_stand_in_count().queries, 3);
	close_all(g);
}

static void test_more_shapes_than_plans(void **state) {
	(void)state;
	struct gemm *g = open_with(NULL);
	for (int round = 0; round < 2; round++)
		for (int m = 1; m <= 300; m++)
			product_run(g, stream, &(struct product_kind){.m = m, .n = 2, .k = 3});
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	assert_int_equal(c.queries, 600); /* in turn, none of the 300 is still there when it comes again */
	assert_int_equal(c.objects, 1 + 256 * 4);
	product_run(g, stream, &(struct product_kind){.m = 300, .n = 2, .k = 3});
	assert_int_equal(cublaslt_stand_in_count().queries, 600);
	close_all(g);
}

/* Sums of bf16 products of many terms: what adds its parts in bf16 is off by several units in the
 * last place. */
static void test_partial_sums_are_fp32(void **state) {
	(void)state;
	const struct product_kind k = {.m = 8, .n = 8, .k = 4096, .in = DTYPE_BF16, .out = DTYPE_BF16};
	struct product_case p;
	/* The algorithms that add in bf16 are the fastest. */
	struct gemm *g = open_with(&(struct cublaslt_stand_in_options){
		.ms = {[STAND_IN_VECTORS] = 3, [STAND_IN_COMPUTE_TYPE] = 1, [STAND_IN_ELEMENTS] = 3}});
	product_init(&p, &k);
	assert_true(gemm_run(g, stream, &p.call));
	product_check(&p, stream);
	for (int i = 0; i < k.m * k.n; i++) {
		uint32_t bits = (uint32_t)((const uint16_t *)p.call.d)[i] << 16;
		float f;
		memcpy(&f, &bits, sizeof f);
		assert_true(fabs((double)f - p.d[i]) <= 0x1.02p-8 * fabs(p.d[i]));
	}
	product_release(&p);
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	assert_int_equal(c.runs_of[STAND_IN_INPLACE] + c.runs_of[STAND_IN_OUTPUT_TYPE], 0);
	assert_true(c.runs_of[STAND_IN_COMPUTE_TYPE] > c.runs_of[STAND_IN_VECTORS]);
	close_all(g);
}

/* Runs a product with an epilogue twice: the counts are those of the second time. */
static struct cublaslt_stand_in_counts second_run(const struct cublaslt_stand_in_options *o) {
	const struct product_kind k = {.m = 16, .n = 16, .k = 16, .bias = true, .epilogue = GEMM_GELU};
	struct gemm *g = open_with(o);
	product_run(g, stream, &k);
	cublaslt_stand_in_reset(o);
	product_run(g, stream, &k);
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	close_all(g);
	assert_int_equal(c.queries, 0);
	assert_int_equal(c.runs, 1);
	return c;
}

static void test_the_fastest_is_taken(void **state) {
	(void)state;
	for (int fastest = STAND_IN_VECTORS; fastest < STAND_IN_ALGORITHMS; fastest++) {
		struct cublaslt_stand_in_options o = {.ms = {5, 5, 5, 5, 5}};
		o.ms[fastest] = 1;
		struct cublaslt_stand_in_counts c = second_run(&o);
		assert_int_equal(c.runs_of[fastest], 1);
		assert_int_equal(c.fused, 1);
		o.epilogue_ms = 2; /* a kernel of ours takes 1 us */
		c = second_run(&o);
		assert_int_equal(c.runs_of[fastest], 1);
		assert_int_equal(c.fused, 0);
	}
}

/* RIVULET_CUDA_DETERMINISTIC=1: no trial, whatever is faster. */
static void test_the_first_guess_is_taken_when_asked_for(void **state) {
	(void)state;
	const struct cublaslt_stand_in_options slow = {.ms = {[STAND_IN_VECTORS] = 9}, .epilogue_ms = 9};
	(void)setenv("RIVULET_CUDA_DETERMINISTIC", "1", 1);
	struct gemm *g = open_with(&slow);
	product_run(g, stream, &(struct product_kind){.m = 16, .n = 16, .k = 16, .bias = true, .epilogue = GEMM_GELU});
	struct cublaslt_stand_in_counts c = cublaslt_stand_in_count();
	(void)unsetenv("RIVULET_CUDA_DETERMINISTIC");
	close_all(g);
	assert_int_equal(c.runs, 1);
	assert_int_equal(c.runs_of[STAND_IN_VECTORS], 1);
	assert_int_equal(c.fused, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds_by_the_library),
		cmocka_unit_test(test_all_kinds_on_lazy_streams),
		cmocka_unit_test(test_all_kinds_with_epilogues_of_ours),
		cmocka_unit_test(test_all_kinds_by_our_own_kernel),
		cmocka_unit_test(test_large_products_by_our_own_kernel),
		cmocka_unit_test(test_plans_are_kept_by_16_byte_alignment),
		cmocka_unit_test(test_more_shapes_than_plans),
		cmocka_unit_test(test_partial_sums_are_fp32),
		cmocka_unit_test(test_the_fastest_is_taken),
		cmocka_unit_test(test_the_first_guess_is_taken_when_asked_for),
	};
	return cmocka_run_group_tests(tests, make_stream, NULL);
}
