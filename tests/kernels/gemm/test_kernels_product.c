/* test_kernels_product.c: our own product on tensor cores (product_mma.cu), on the emulator: every
 * layout, type and epilogue, sizes around its tiles, against sums in fp64; and what it leaves to
 * product.cu. */
#include "kernels/cuda/launch_product.h"
#include "tests/common/check.h"
#include "tests/kernels/gemm/product.h"

#include <emu/runtime.h>
#include <stdio.h>
#include <stdlib.h>

static void run(const struct product_kind *k) {
	struct product_case p;
	product_init(&p, k);
	assert_true(launch_product_mma_fits(&p.call));
	launch_product(NULL, &p.call);
	product_check(&p, NULL);
	product_release(&p);
}

static void test_every_layout_and_epilogue(void **state) {
	(void)state;
	/* Within one tile; over its edges; several tiles each way, and more steps than stages. */
	static const struct { int m, n, k; } sizes[] = {{8, 8, 8}, {64, 136, 40}, {136, 160, 104}};
	int n = 0;
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
		for (int variant = 0; variant < 4 * 2 * 4; variant++) {
			const enum gemm_epilogue epilogue = (enum gemm_epilogue)(variant >> 3 & 3);
			struct product_kind k = {.m = sizes[s].m,
									 .n = sizes[s].n,
									 .k = sizes[s].k,
									 .padding = 8 * (variant & 1),
									 .a_transposed = variant & 1,
									 .b_transposed = variant & 2,
									 .in = DTYPE_BF16,
									 .out = variant & 4 ? DTYPE_F32 : DTYPE_BF16,
									 .epilogue = epilogue,
									 .accumulate = epilogue == GEMM_PLAIN && variant & 4,
									 .bias = epilogue == GEMM_BIAS || (epilogue == GEMM_GELU && variant & 2)};
			run(&k);
			n++;
		}
	print_message("%d products\n", n);
}

/* Sums of rows in the product: one tile, several each way, parts of tiles; k shorter than a step,
 * and more steps than stages. */
static void test_sums_of_rows(void **state) {
	(void)state;
	for (int m = 8; m <= 264; m += 64)
		for (int k = 1; k <= 145; k += 24)
			run(&(struct product_kind){.m = m,
									   .n = m == 136 ? 264 : 24,
									   .k = k,
									   .a_transposed = true,
									   .in = DTYPE_BF16,
									   .out = DTYPE_F32,
									   .accumulate = k % 48 == 1,
									   .epilogue = GEMM_SUMS});
}

/* Rows and columns of a vocabulary, whose number is no multiple of 8 while its rows are. */
static void test_odd_sizes(void **state) {
	(void)state;
	for (int m = 121; m <= 137; m += 4) {
		run(&(struct product_kind){
			.m = m, .n = 16, .k = 24, .b_transposed = true, .in = DTYPE_BF16, .out = DTYPE_BF16});
		run(&(struct product_kind){.m = 16, .n = m, .k = 24, .b_transposed = true, .in = DTYPE_BF16, .out = DTYPE_F32});
		run(&(struct product_kind){.m = m,
								   .n = m,
								   .k = 13,
								   .padding = 24 - m % 8,
								   .a_transposed = true,
								   .in = DTYPE_BF16,
								   .out = DTYPE_F32,
								   .accumulate = true});
	}
}

/* Returns whether a product of `k` is one for tensor cores; computes it either way. */
static bool fits(const struct product_kind *k) {
	struct product_case p;
	product_init(&p, k);
	bool fit = launch_product_mma_fits(&p.call);
	launch_product(NULL, &p.call);
	product_check(&p, NULL);
	product_release(&p);
	return fit;
}

static void test_what_does_not_fit_is_computed_all_the_same(void **state) {
	(void)state;
	struct product_kind k = {.m = 24, .n = 24, .k = 24, .b_transposed = true, .in = DTYPE_BF16, .out = DTYPE_BF16};
	assert_true(fits(&k));
	k.shift = 1; /* not aligned to 16 bytes */
	assert_false(fits(&k));
	k.shift = 0;
	k.padding = 4; /* rows are not */
	assert_false(fits(&k));
	k.padding = 0;
	k.k = 20; /* a piece of 16 bytes would go beyond k */
	k.padding = 4;
	assert_false(fits(&k));
	k = (struct product_kind){.m = 24, .n = 24, .k = 24, .in = DTYPE_F32, .out = DTYPE_F32};
	assert_false(fits(&k));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_layout_and_epilogue),
									   cmocka_unit_test(test_odd_sizes), cmocka_unit_test(test_sums_of_rows),
									   cmocka_unit_test(test_what_does_not_fit_is_computed_all_the_same)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
