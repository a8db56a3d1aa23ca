/* test_kernels_packing.c: our own product has the same bits however its operands are stored, hence
 * packed, and the sums of rows that it adds have the bits of column sums by themselves. */
#include "tests/kernels/fixture.h"

#include "kernels/cpu/cpu.h"

#include <stdlib.h>

struct product {
	int m, n, k;
};

/* Around the borders of packing along k: 32 and 64 rows, passes of 512 and parts of 1024 words of
 * one or two elements, a pass that ends within 64; few rows (at most 512, which B's slices are for)
 * and more; several blocks of A. */
static const struct product products[] = {{1, 1, 1},      {15, 33, 31},   {75, 40, 65},   {300, 70, 130},
										  {600, 33, 700}, {33, 300, 700}, {40, 65, 1100}, {75, 40, 3100}};

enum { PART = 1024 }; /* sums of at most so many rows are one part's, for every word */

static float *transposed(const float *x, int rows, int cols) {
	float *t = zero_floats((size_t)rows * cols);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < cols; j++)
			t[(size_t)j * rows + i] = x[(size_t)i * cols + j];
	return t;
}

static void body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	struct cpu_backend *be = (struct cpu_backend *)cpu;
	const struct product p = *(const struct product *)ctx;
	const size_t mk = (size_t)p.m * p.k, nk = (size_t)p.n * p.k, mn = (size_t)p.m * p.n;
	float *a[2] = {random_floats(mk, 1, 1)}, *b[2] = {random_floats(nk, 2, 1)}, *want = zero_floats(mn);
	a[1] = transposed(a[0], p.m, p.k);
	b[1] = transposed(b[0], p.k, p.n);
	for (int way = 0; way < 4; way++) {
		const bool ta = way & 1, tb = way & 2;
		float *c = zero_floats(mn), *sums = random_floats((size_t)p.m, 3, 1), *plain = random_floats((size_t)p.m, 3, 1);
		cpu_gemm_own(be, &(struct gemm){.ta = ta,
										.tb = tb,
										.m = p.m,
										.n = p.n,
										.k = p.k,
										.a = a[ta],
										.lda = ta ? p.m : p.k,
										.b = b[tb],
										.ldb = tb ? p.k : p.n,
										.c = way ? c : want,
										.ldc = p.n,
										.row_sums = ta ? sums : NULL});
		if (way)
			check_same("c", c, want, mn);
		if (ta && p.k <= PART) {
			be->isa->add_column_sums(plain, a[1], p.m, p.k, p.m);
			check_same("row sums", sums, plain, (size_t)p.m);
		}
		free(c);
		free(sums);
		free(plain);
	}
	float *all[] = {a[0], a[1], b[0], b[1], want};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void test_bits_do_not_depend_on_how_operands_are_stored(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
		for_each_variant(body, &products[i]);
		for_each_bf16_variant(body, &products[i]);
	}
}

static void sums_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { ROWS = 300, COLS = 71, LD = 75 };
	static const int rows[] = {1, 63, 64, 65, 128, 200, ROWS}, cols[] = {1, 15, 16, 64, COLS};
	struct cpu_backend *be = (struct cpu_backend *)cpu;
	float *x = random_floats(ROWS * LD, 1, 1);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t j = 0; j < sizeof cols / sizeof cols[0]; j++) {
			float *got = random_floats((size_t)cols[j], 2, 1), *want = random_floats((size_t)cols[j], 2, 1);
			cpu_add_column_sums(be, got, x, LD, rows[i], cols[j]);
			be->isa->add_column_sums(want, x, LD, rows[i], cols[j]);
			check_same("column sums", got, want, (size_t)cols[j]);
			free(got);
			free(want);
		}
	free(x);
}

static void test_column_sums_have_the_same_bits_by_whole_rows(void **state) {
	(void)state;
	for_each_variant(sums_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_column_sums_have_the_same_bits_by_whole_rows),
		cmocka_unit_test(test_bits_do_not_depend_on_how_operands_are_stored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
