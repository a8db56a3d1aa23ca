/* test_kernels_normals.c: many normal values at once are rv_rng_normal's, to the bit, on every
 * instruction set, for every thread count and however they are divided; and they are normal. */
#include "tests/kernels/fixture.h"

#include "kernels/cpu/cpu.h"
#include "kernels/normals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 100003, LARGE = 1 << 21 };

static const float std_dev = 0.0123f;

/* Counters around 2^32, where a lane's carry goes into the high word. */
static const struct rv_rng starts[] = {
	{1, 2, 0}, {42, UINT64_C(0x696e697400000007), 3}, {UINT64_MAX, 5, UINT64_C(0xffffff80)}, {9, UINT64_MAX, 1 << 20}};
enum { STARTS = sizeof starts / sizeof starts[0] };

static float *one_at_a_time(struct rv_rng rng, size_t n) {
	float *x = malloc(n * sizeof *x);
	assert_non_null(x);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)std_dev * rv_rng_normal(&rng));
	return x;
}

static void check_isa(const char *name, struct rv_rng from, const float *want, size_t n) {
	bool best;
	const struct isa_kernels *isa = cpu_isa_choose(name, &best);
	float *got = calloc(n + 1, sizeof *got);
	assert_true(isa && got);
	got[n] = 7;
	isa->normals(&(struct normal_values){got, n, from.seed, from.stream, from.counter, (double)std_dev});
	assert_memory_equal(got, want, n * sizeof *got);
	assert_true(got[n] == 7);
	free(got);
}

static void test_every_instruction_set_has_the_same_bits(void **state) {
	(void)state;
	static const size_t sizes[] = {1, 255, 256, 257, MANY};
	for (int i = 0; i < STARTS; i++) {
		float *want = one_at_a_time(starts[i], MANY);
		for (int k = 0; cpu_isa_name(k); k++)
			for (int j = 0; j < 5; j++)
				check_isa(cpu_isa_name(k), starts[i], want, sizes[j]);
		free(want);
	}
}

/* Counters whose values are far out: see test_base_rng.c. All sixteen lanes around them too. */
static void test_far_tails(void **state) {
	(void)state;
	static const struct rv_rng far[] = {{42, 0x4e04a489e3ef91fe, 0xb9dde2f85af881a3},
										{42, 0xda916fe17bd4842e, 0x781de687b0679a51},
										{42, 0xe7fe0113fc19c47a, 0xbcae31a0e049a3eb}};
	for (int i = 0; i < 3; i++) {
		struct rv_rng from = far[i];
		from.counter -= 9;
		float *want = one_at_a_time(from, 20);
		assert_true(fabsf(want[9]) > 7 * std_dev);
		for (int k = 0; cpu_isa_name(k); k++)
			check_isa(cpu_isa_name(k), from, want, 20);
		free(want);
	}
}

static void test_threads_and_pieces_change_nothing(void **state) {
	(void)state;
	float *want = one_at_a_time(starts[1], MANY), *got = malloc(MANY * sizeof *got);
	assert_non_null(got);
	for (int threads = 0; threads <= 5; threads++) {
		memset(got, 0, MANY * sizeof *got);
		normals_fill(got, MANY, &starts[1], std_dev, threads);
		assert_memory_equal(got, want, MANY * sizeof *got);
	}
	memset(got, 0, MANY * sizeof *got);
	for (size_t at = 0, n; at < MANY; at += n) {
		struct rv_rng from = starts[1];
		n = MANY - at < 7001 ? MANY - at : 7001;
		from.counter += at;
		normals_fill(got + at, n, &from, std_dev, 2);
	}
	assert_memory_equal(got, want, MANY * sizeof *got);
	free(want);
	free(got);
}

static int by_value(const void *a, const void *b) {
	const float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov: the largest distance of the empirical distribution from the normal, against
 * its 0.1 % quantile 1.95 / sqrt(n); and four moments, within five standard errors. */
static void test_they_are_normal(void **state) {
	(void)state;
	float *x = malloc(LARGE * sizeof *x);
	double largest = 0, moments[5] = {0};
	const double n = LARGE, root = sqrt(n);
	assert_non_null(x);
	normals_fill(x, LARGE, &starts[1], 1, 0);
	qsort(x, LARGE, sizeof *x, by_value);
	for (int i = 0; i < LARGE; i++) {
		const double v = (double)x[i], cdf = 0.5 * erfc(-v / sqrt(2));
		largest = fmax(largest, fmax(fabs(cdf - i / n), fabs(cdf - (i + 1) / n)));
		for (int k = 1; k <= 4; k++)
			moments[k] += pow(v, k) / n;
	}
	free(x);
	assert_true(largest < 1.95 / root);
	assert_true(fabs(moments[1]) < 5 / root && fabs(moments[2] - 1) < 5 * sqrt(2) / root);
	assert_true(fabs(moments[3]) < 5 * sqrt(15) / root && fabs(moments[4] - 3) < 5 * sqrt(96) / root);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_instruction_set_has_the_same_bits),
		cmocka_unit_test(test_far_tails),
		cmocka_unit_test(test_threads_and_pieces_change_nothing),
		cmocka_unit_test(test_they_are_normal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
