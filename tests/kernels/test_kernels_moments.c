/* test_kernels_moments.c: moments in 8 bits: what a code says, that rounding has no bias, and that
 * every instruction set has the bits of kernels/moments.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/moments.h"
#include "tests/kernels/fixture.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Neighbouring codes differ by 3/32 of the mantissa of the lower end of an octave. */
#define LARGEST_STEP 0.09376

static float decoded(enum moment which, float value, float top, uint32_t seed) {
	float block[MOMENTS_BLOCK] = {value, top}, back[MOMENTS_BLOCK];
	_Alignas(float) uint8_t vector[MOMENTS_BLOCK + sizeof(float)] = {0};
	moments_encode_block(which, vector, 2, 0, block, seed);
	assert_int_equal(moments_decode_block(which, vector, 2, 0, back), 2);
	assert_true(back[1] == top); /* the largest is exact */
	return back[0];
}

static void test_a_code_is_within_a_step(void **state) {
	(void)state;
	for (int i = 0; i < 20000; i++) {
		const float top = ldexpf(1.7f, i % 60 - 40), value = top * exp2f(-(float)(i % 977) * 0.0119f);
		const float first = decoded(MOMENT_FIRST, i & 1 ? -value : value, top, (uint32_t)i);
		const float second = decoded(MOMENT_SECOND, value, top, (uint32_t)i);
		assert_true(fabs((double)fabsf(first) / (double)value - 1) <= LARGEST_STEP);
		assert_true((first < 0) == (i % 2 == 1));
		assert_true(fabs((double)second / (double)value - 1) <= LARGEST_STEP);
	}
}

/* The first moment has 11.8 octaves below the top, the second 23.8; under these one is lost, and
 * the other stays. Zero is zero. */
static void test_the_ends_of_the_range(void **state) {
	(void)state;
	for (uint32_t seed = 0; seed < 50; seed++) {
		assert_true(decoded(MOMENT_FIRST, 0, 3, seed) == 0 && decoded(MOMENT_SECOND, 0, 3, seed) == 0);
		assert_true(decoded(MOMENT_FIRST, ldexpf(1, -13), 1, seed) == 0);
		const float least = decoded(MOMENT_SECOND, 1e-30f, 1, seed);
		assert_true(least > ldexpf(1, -25) && least < ldexpf(1, -23));
		assert_true(decoded(MOMENT_FIRST, FLT_TRUE_MIN, FLT_TRUE_MIN, seed) == FLT_TRUE_MIN);
		assert_true(decoded(MOMENT_SECOND, FLT_TRUE_MIN, 1e-38f, seed) <= 1e-38f);
		assert_true(isfinite(decoded(MOMENT_SECOND, FLT_MAX / 3, FLT_MAX, seed)));
	}
}

/* The mean of many roundings is the moment, also where it changes by far less than a step. */
static void test_rounding_has_no_bias(void **state) {
	(void)state;
	enum { TIMES = 20000 };
	for (int i = 0; i < 12; i++) {
		const float value = exp2f(-(float)i * 0.613f - 0.05f);
		double first = 0, second = 0;
		for (uint32_t k = 0; k < TIMES; k++) {
			const uint32_t seed = moments_seed(k, (uint64_t)i);
			first += (double)decoded(MOMENT_FIRST, -value, 1, seed) / TIMES;
			second += (double)decoded(MOMENT_SECOND, value, 1, seed) / TIMES;
		}
		assert_true(fabs(-first / (double)value - 1) < 0.004 && fabs(second / (double)value - 1) < 0.004);
	}
}

/* A decaying second moment decays, whose change in one step is a 70th of a code. */
static void test_a_slow_average_moves(void **state) {
	(void)state;
	float block[MOMENTS_BLOCK], expected = 1;
	_Alignas(float) uint8_t vector[MOMENTS_BLOCK + sizeof(float)] = {0};
	double mean = 0;
	for (int i = 0; i < MOMENTS_BLOCK; i++)
		block[i] = 1;
	moments_encode_block(MOMENT_SECOND, vector, MOMENTS_BLOCK, 0, block, 0);
	for (uint64_t step = 1; step <= 1000; step++) {
		(void)moments_decode_block(MOMENT_SECOND, vector, MOMENTS_BLOCK, 0, block);
		for (int i = 1; i < MOMENTS_BLOCK; i++)
			block[i] *= 0.999f;
		moments_encode_block(MOMENT_SECOND, vector, MOMENTS_BLOCK, 0, block, moments_seed(step, 7));
		expected *= 0.999f;
	}
	(void)moments_decode_block(MOMENT_SECOND, vector, MOMENTS_BLOCK, 0, block);
	for (int i = 1; i < MOMENTS_BLOCK; i++)
		mean += (double)block[i] / (MOMENTS_BLOCK - 1);
	assert_true(block[0] == 1);
	if (!(fabs(mean / (double)expected - 1) < 0.06))
		fail_msg("mean %.4f, expected %.4f", mean, (double)expected);
}

/* Codes of random moments of all sizes, a block of zeros and one of denormals among them. */
static void check_isa(const char *name) {
	enum { BLOCKS = 200, N = BLOCKS * MOMENTS_BLOCK };
	bool best;
	const struct isa_kernels *isa = cpu_isa_choose(name, &best);
	if (!isa || strcmp(isa->name, name) != 0)
		return;
	const size_t bytes = moments_bytes(MOMENTS_INT8, N);
	uint8_t *m = calloc(1, bytes), *v = calloc(1, bytes), *m_want = calloc(1, bytes), *v_want = calloc(1, bytes);
	float *first = random_floats(N, 1, 1), *second = random_floats(N, 2, 1);
	assert_true(m && v && m_want && v_want);
	for (int block = 0; block < BLOCKS; block++) {
		const size_t at = (size_t)block * MOMENTS_BLOCK;
		const uint32_t seed = moments_seed(5, (uint64_t)block);
		const struct moments_block codes = {m + at, v + at, moments_tops(m, N) + block, moments_tops(v, N) + block};
		_Alignas(64) float m_back[MOMENTS_BLOCK], v_back[MOMENTS_BLOCK];
		float m_same[MOMENTS_BLOCK], v_same[MOMENTS_BLOCK];
		for (size_t i = at; i < at + MOMENTS_BLOCK; i++) {
			const float scale = block == 0 ? 0 : ldexpf(1, block == 1 ? -140 : (int)(i * 7919 % 31) - block);
			first[i] *= scale;
			second[i] = fabsf(second[i] * scale);
		}
		moments_encode_block(MOMENT_FIRST, m_want, N, (size_t)block, first + at, seed);
		moments_encode_block(MOMENT_SECOND, v_want, N, (size_t)block, second + at, seed);
		isa->moments_encode(&codes, first + at, second + at, seed);
		isa->moments_decode(m_back, v_back, &codes);
		(void)moments_decode_block(MOMENT_FIRST, m_want, N, (size_t)block, m_same);
		(void)moments_decode_block(MOMENT_SECOND, v_want, N, (size_t)block, v_same);
		check_same("m", m_back, m_same, MOMENTS_BLOCK);
		check_same("v", v_back, v_same, MOMENTS_BLOCK);
	}
	assert_memory_equal(m, m_want, bytes);
	assert_memory_equal(v, v_want, bytes);
	print_message("%s: the same bits\n", name);
	free(m);
	free(v);
	free(m_want);
	free(v_want);
	free(first);
	free(second);
}

static void test_every_instruction_set_has_the_same_codes(void **state) {
	(void)state;
	static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		check_isa(names[i]);
}

/* A slice is updated as it is in the whole, with moments of its own or within those of all. */
static void slices_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	enum { N = 5 * MOMENTS_BLOCK + 77, CUT = 2 * MOMENTS_BLOCK };
	(void)ref;
	(void)ctx;
	float *p[3] = {random_floats(N, 1, 1), random_floats(N, 1, 1), random_floats(N, 1, 1)};
	float *g = random_floats(N, 2, 1), *whole[2], *within[2], *parts[2][2];
	const size_t sizes[2] = {CUT, N - CUT};
	for (int k = 0; k < 2; k++) {
		whole[k] = zero_floats(moments_bytes(MOMENTS_INT8, N) / sizeof(float));
		within[k] = zero_floats(moments_bytes(MOMENTS_INT8, N) / sizeof(float));
		for (int i = 0; i < 2; i++)
			parts[i][k] = zero_floats(moments_bytes(MOMENTS_INT8, sizes[i]) / sizeof(float));
	}
	for (int64_t step = 1; step <= 5; step++) {
		const struct adamw_params a = {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 0.5f, step};
		const struct decay_span all[] = {{0, 700, true}, {700, N, false}}, low[] = {{0, CUT, true}},
								high[] = {{0, 700 - CUT, true}, {700 - CUT, N - CUT, false}};
		cpu->ops->adamw8(cpu, p[0], g, whole[0], whole[1], all, 2, &a, (struct moments_place){N, 0, 3 * MOMENTS_BLOCK});
		cpu->ops->adamw8(cpu, p[1], g, parts[0][0], parts[0][1], low, 1, &a,
						 (struct moments_place){CUT, 0, 3 * MOMENTS_BLOCK});
		cpu->ops->adamw8(cpu, p[1] + CUT, g + CUT, parts[1][0], parts[1][1], high, 2, &a,
						 (struct moments_place){N - CUT, 0, 3 * MOMENTS_BLOCK + CUT});
		cpu->ops->adamw8(cpu, p[2], g, within[0], within[1], low, 1, &a,
						 (struct moments_place){N, 0, 3 * MOMENTS_BLOCK});
		cpu->ops->adamw8(cpu, p[2] + CUT, g + CUT, within[0], within[1], high, 2, &a,
						 (struct moments_place){N, CUT, 3 * MOMENTS_BLOCK + CUT});
		check_same("p", p[2], p[0], N);
		check_same("p", p[1], p[0], N);
	}
	assert_memory_equal(whole[0], parts[0][0], CUT);
	free(p[2]);
	for (int k = 0; k < 2; k++) {
		assert_memory_equal(whole[k], within[k], moments_bytes(MOMENTS_INT8, N));
		free(p[k]);
		free(whole[k]);
		free(within[k]);
		free(parts[0][k]);
		free(parts[1][k]);
	}
	free(g);
}

static void test_slices_round_as_the_whole(void **state) {
	(void)state;
	for_each_variant(slices_body, NULL);
}

/* Same gradients for long: parameters end where fp32 moments take them, to a few steps' noise. */
static void long_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	enum { N = 4096, STEPS = 300 };
	(void)ref;
	(void)ctx;
	const struct decay_span span = {0, N, true};
	float *p[2] = {zero_floats(N), zero_floats(N)}, *m = zero_floats(N), *v = zero_floats(N);
	float *m8 = zero_floats(moments_bytes(MOMENTS_INT8, N) / sizeof(float)),
		  *v8 = zero_floats(moments_bytes(MOMENTS_INT8, N) / sizeof(float)), *to = random_floats(N, 9, 1);
	double error = 0, norm = 0;
	for (int64_t step = 1; step <= STEPS; step++) {
		const struct adamw_params a = {0.01f, 0.9f, 0.999f, 1e-8f, 0, 1, step};
		float *noise = random_floats(N, 100 + (uint64_t)step, 0.5f), *g = zero_floats(N);
		for (int k = 0; k < 2; k++) {
			for (int i = 0; i < N; i++)
				g[i] = p[k][i] - to[i] + noise[i];
			if (k == 0)
				cpu->ops->adamw(cpu, p[0], g, m, v, &span, 1, &a);
			else
				cpu->ops->adamw8(cpu, p[1], g, m8, v8, &span, 1, &a, (struct moments_place){N, 0, 0});
		}
		free(noise);
		free(g);
	}
	for (int i = 0; i < N; i++) {
		error += ((double)p[1][i] - (double)p[0][i]) * ((double)p[1][i] - (double)p[0][i]);
		norm += (double)to[i] * (double)to[i];
	}
	if (!(sqrt(error / norm) < 0.02))
		fail_msg("parameters differ by %.4f of their norm", sqrt(error / norm));
	float *all[] = {p[0], p[1], m, v, m8, v8, to};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void test_it_ends_where_fp32_moments_end(void **state) {
	(void)state;
	for_each_variant(long_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_code_is_within_a_step),
		cmocka_unit_test(test_the_ends_of_the_range),
		cmocka_unit_test(test_rounding_has_no_bias),
		cmocka_unit_test(test_a_slow_average_moves),
		cmocka_unit_test(test_every_instruction_set_has_the_same_codes),
		cmocka_unit_test(test_slices_round_as_the_whole),
		cmocka_unit_test(test_it_ends_where_fp32_moments_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
