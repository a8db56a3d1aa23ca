/* Every instruction set's codec kernels give the same bytes as the portable loops, and write
 * nothing past the end. */
#include "outer/codec_kernels.h"
#include "outer/float_bits.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <string.h>

enum { GUARD = 32, CAP = LARGEST_SIZE + GUARD };

static float a[CAP], b[CAP], got[CAP], want[CAP];
static int8_t q[CAP], q_got[CAP], q_want[CAP];

static const struct codec_kernels *const reference = &codec_kernels_portable;

/* Calls `check` for each set but the reference, at each size and at a misaligned start. */
static void each(void (*check)(const struct codec_kernels *k, size_t n, size_t shift)) {
	for (int i = 0; codec_kernels_at(i); i++)
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
			for (size_t shift = 0; shift < 2; shift++)
				check(codec_kernels_at(i), awkward_sizes[s], shift);
}

static void prepare(uint64_t seed) {
	fill_normal(a, CAP, seed);
	fill_normal(b, CAP, seed + 1);
	struct rv_rng r = rv_rng_of(seed, 9);
	for (size_t i = 0; i < CAP; i++)
		q[i] = (int8_t)((int)rv_rng_below(&r, 255) - 127);
	memcpy(got, b, sizeof got);
	memcpy(want, b, sizeof want);
	memset(q_got, 99, sizeof q_got);
	memset(q_want, 99, sizeof q_want);
}

static void check_absmax(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	assert_int_equal(k->absmax_bits(a + shift, n), reference->absmax_bits(a + shift, n));
	a[shift + n / 2] = -0x1p90f;
	assert_int_equal(k->absmax_bits(a + shift, n), float_bits(0x1p90f));
	a[shift + n - 1] = NAN;
	assert_true(k->absmax_bits(a + shift, n) >= FLOAT_INF_BITS);
	a[shift + n - 1] = -INFINITY;
	assert_true(k->absmax_bits(a + shift, n) >= FLOAT_INF_BITS);
	a[shift + n] = NAN; /* not ours */
	a[shift + n - 1] = 1;
	assert_true(k->absmax_bits(a + shift, n) < FLOAT_INF_BITS);
}

static void check_delta(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	uint32_t m = k->delta_absmax_bits(a + shift, b, got + shift, n);
	assert_int_equal(m, reference->delta_absmax_bits(a + shift, b, want + shift, n));
	assert_memory_equal(got, want, sizeof got);
	a[shift + n - 1] = INFINITY;
	assert_true(k->delta_absmax_bits(a + shift, b, got + shift, n) >= FLOAT_INF_BITS);
}

static void check_quantize(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	float absmax = float_of_bits(reference->absmax_bits(a + shift, n));
	float inverse = (float)exp2(6 - ceil(log2(absmax))); /* all values come to lie within [-64, 64] */
	for (size_t i = 0; i < n; i += 5)
		a[shift + i] = ((float)(i % 250) - 125 + 0.5f) / inverse; /* exact ties */
	k->quantize(a + shift, inverse, q_got + shift, n);
	reference->quantize(a + shift, inverse, q_want + shift, n);
	assert_memory_equal(q_got, q_want, sizeof q_got);
}

static void check_squares_int8(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	q[shift + n] = 111; /* not ours */
	assert_int_equal(k->squares_int8(q + shift, n), reference->squares_int8(q + shift, n));
	memset(q, -128, sizeof q);
	assert_int_equal(k->squares_int8(q + shift, n), n * 128 * 128);
}

static void check_dot_int8(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	double want_dot = reference->dot_int8(q + shift, b, n);
	q[shift + n] = 111; /* not ours */
	b[n] = NAN;
	double got_dot = k->dot_int8(q + shift, b, n), exact = 0, most = 0;
	assert_memory_equal(&got_dot, &want_dot, sizeof got_dot);
	for (size_t i = 0; i < n; i++) {
		exact += (double)q[shift + i] * (double)b[i];
		most += fabs((double)q[shift + i] * (double)b[i]);
	}
	assert_true(fabs(got_dot - exact) <= 1e-5 * most);
}

/* Magnitudes from 1e-30 to 1e30, so that every other order of the sum gives other bits. */
static void check_dot(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	for (size_t i = 0; i < CAP; i++)
		a[i] *= (float)pow(10, (double)(i * 7 % 61) - 30);
	double want_dot = reference->dot(a + shift, b, n), want_squares = reference->dot(a + shift, a + shift, n);
	a[shift + n] = NAN; /* not ours */
	double got_dot = k->dot(a + shift, b, n), got_squares = k->dot(a + shift, a + shift, n);
	assert_memory_equal(&got_dot, &want_dot, sizeof got_dot);
	assert_memory_equal(&got_squares, &want_squares, sizeof got_squares);
}

static void check_absmax_int8(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	assert_int_equal(k->absmax_int8(q + shift, n), reference->absmax_int8(q + shift, n));
	memset(q, 0, sizeof q);
	q[shift + n] = 111; /* not ours */
	assert_int_equal(k->absmax_int8(q + shift, n), 0);
	q[shift + n / 2] = -3;
	assert_int_equal(k->absmax_int8(q + shift, n), 3);
	q[shift + n - 1] = -128;
	assert_int_equal(k->absmax_int8(q + shift, n), 128);
}

static void check_dequantize(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	k->dequantize(q + shift, 0x1.0204p-9f, got + shift, n);
	reference->dequantize(q + shift, 0x1.0204p-9f, want + shift, n);
	assert_memory_equal(got, want, sizeof got);
}

static void check_dequantize_add(const struct codec_kernels *k, size_t n, size_t shift) {
	for (int weight = 1; weight <= 3; weight += 2) {
		prepare(n);
		k->dequantize_add(q + shift, 0x1.86aap-11f, (float)weight, got + shift, n);
		reference->dequantize_add(q + shift, 0x1.86aap-11f, (float)weight, want + shift, n);
		assert_memory_equal(got, want, sizeof got);
	}
}

static void check_scaled_add(const struct codec_kernels *k, size_t n, size_t shift) {
	prepare(n);
	k->scaled_add(a + shift, 3, got + shift, n);
	reference->scaled_add(a + shift, 3, want + shift, n);
	assert_memory_equal(got, want, sizeof got);
}

#define EACH(name)                                                                                                     \
	static void test_##name(void **state) {                                                                            \
		(void)state;                                                                                                   \
		each(check_##name);                                                                                            \
	}
EACH(absmax)
EACH(delta)
EACH(quantize)
EACH(absmax_int8)
EACH(dequantize)
EACH(dequantize_add)
EACH(scaled_add)
EACH(squares_int8)
EACH(dot_int8)
EACH(dot)

static void test_sets(void **state) {
	(void)state;
	assert_ptr_equal(codec_kernels_at(0), codec_kernels_best());
	int n = 0;
	while (codec_kernels_at(n))
		n++;
	assert_ptr_equal(codec_kernels_at(n - 1), reference);
}

static void test_rounds_to_nearest_even(void **state) {
	(void)state;
	const float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, 0.49999997f, -0.0f, 127.0f, -127.0f};
	const int8_t wanted[] = {0, 2, 2, 0, -2, -2, 126, -126, 0, 0, 127, -127};
	for (int i = 0; codec_kernels_at(i); i++) {
		codec_kernels_at(i)->quantize(x, 1, q_got, COUNT_OF(x));
		assert_memory_equal(q_got, wanted, sizeof wanted);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_absmax),
		cmocka_unit_test(test_delta),
		cmocka_unit_test(test_quantize),
		cmocka_unit_test(test_rounds_to_nearest_even),
		cmocka_unit_test(test_absmax_int8),
		cmocka_unit_test(test_dequantize),
		cmocka_unit_test(test_dequantize_add),
		cmocka_unit_test(test_scaled_add),
		cmocka_unit_test(test_squares_int8),
		cmocka_unit_test(test_dot_int8),
		cmocka_unit_test(test_dot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
