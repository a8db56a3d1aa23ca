/* q6sigma: the codebook against one made in the plainest way, clipping, the ends of fp32, and what decode refuses. */
#include "outer/codec.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BOOK_BYTES = 1024, BYTES_CAP = BOOK_BYTES + LARGEST_SIZE };

/* Relative error of the whole vector on Gaussian values: .0161 measured, most of it the clipped tails (int8: .0070). */
#define GAUSSIAN_CEILING 0.018

static const struct codec *const c = &codec_q6sigma;

static float x[LARGEST_SIZE], y[LARGEST_SIZE];
static uint8_t code[BYTES_CAP], code2[BYTES_CAP];

static void encode_plainly(const float *v, size_t n, uint8_t *out) {
	double mean = 0, squares = 0, sum[256] = {0}, count[256] = {0};
	for (size_t i = 0; i < n; i++)
		mean += (double)v[i];
	mean /= (double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((double)v[i] - mean) * ((double)v[i] - mean);
	double s = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	for (size_t i = 0; i < n; i++) {
		double at = s > 0 ? nearbyint(((double)v[i] - mean) / (6 * s / 256)) + 128 : 128;
		int bucket = (int)fmin(fmax(at, 0), 255);
		sum[bucket] += (double)v[i];
		count[bucket]++;
		out[BOOK_BYTES + i] = (uint8_t)bucket;
	}
	for (size_t j = 0; j < 256; j++) {
		float entry = count[j] > 0 ? (float)(sum[j] / count[j]) : 0;
		memcpy(out + 4 * j, &entry, 4);
	}
}

static void check_properties(size_t n) {
	double lowest = DBL_MAX, highest = -DBL_MAX;
	assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
	encode_plainly(x, n, code2);
	assert_memory_equal(code, code2, c->encoded_bytes(n));
	assert_int_equal(c->decode(code, n, y, NULL), RV_OK);
	for (size_t i = 0; i < n; i++) {
		lowest = fmin(lowest, (double)x[i]);
		highest = fmax(highest, (double)x[i]);
	}
	for (size_t i = 0; i < n; i++)
		assert_true((double)y[i] >= lowest && (double)y[i] <= highest);
}

static void test_properties(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++) {
		fill_normal(x, awkward_sizes[s], s);
		check_properties(awkward_sizes[s]);
		fill_any_finite(x, awkward_sizes[s], s);
		check_properties(awkward_sizes[s]);
	}
}

static void test_extremes(void **state) {
	(void)state;
	const float tops[] = {0, FLT_MAX, FLT_MIN, FLT_TRUE_MIN, 1};
	for (size_t t = 0; t < COUNT_OF(tops); t++) {
		memset(x, 0, sizeof x);
		x[5] = tops[t];
		x[6] = -tops[t] / 3;
		check_properties(300);
	}
	for (size_t i = 0; i < 300; i++) /* equal values: no deviation, all exact */
		x[i] = FLT_MAX;
	check_properties(300);
	assert_memory_equal(x, y, 300 * sizeof *x);
	memset(x, 0, sizeof x);
	check_properties(300);
	assert_memory_equal(x, y, 300 * sizeof *x);
}

static void test_sizes(void **state) {
	(void)state;
	assert_int_equal(c->encoded_bytes(0), 0);
	assert_int_equal(c->encoded_bytes(1), BOOK_BYTES + 1);
	assert_int_equal(c->encoded_bytes(65536), BOOK_BYTES + 65536);
	assert_int_equal(c->encode(x, 0, code, NULL), RV_OK);
	assert_int_equal(c->decode(code, 0, y, NULL), RV_OK);
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	check_refuses_what_is_not_finite(c, 300, 31);
	const float bad[] = {NAN, INFINITY, -INFINITY};
	for (size_t b = 0; b < COUNT_OF(bad); b++)
		for (size_t at = 0; at < 300; at += 31) {
			fill_normal(x, 300, at);
			assert_int_equal(c->encode(x, 300, code, NULL), RV_OK);
			memcpy(code + 4 * (at % 256), &bad[b], 4); /* an entry, used or not */
			check_refused(c, code, 300, "must be finite");
		}
}

static void test_delta_and_decode_add(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
		check_delta_and_decode_add(c, awkward_sizes[s]);
}

/* Of the first 2048 of x (4096), encoded together with the others. */
static double small_error(const struct codec *by) {
	double signal = 0, noise = 0;
	assert_int_equal(by->encode(x, 4096, code, NULL), RV_OK);
	assert_int_equal(by->decode(code, 4096, y, NULL), RV_OK);
	for (size_t i = 0; i < 2048; i++) {
		signal += (double)x[i] * (double)x[i];
		noise += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
	}
	return sqrt(noise / signal);
}

/* Gaussian values; and why the scale belongs to a small block: values a hundred times smaller than the rest of the
 * chunk are lost here, where int8 keeps them. */
static void test_error_on_gaussian(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(5, 5);
	for (size_t i = 0; i < 4096; i++)
		x[i] = (float)rv_rng_normal(&r);
	const double error = codec_relative_error(c, x, 4096);
	print_message("q6sigma: relative error %.4f\n", error);
	assert_true(error < GAUSSIAN_CEILING);
	for (size_t i = 0; i < 2048; i++)
		x[i] *= 0.01f;
	assert_true(small_error(c) > 0.3);
	assert_true(small_error(&codec_int8) < 0.008);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refuses_what_is_not_finite),
		cmocka_unit_test(test_delta_and_decode_add),
		cmocka_unit_test(test_error_on_gaussian),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
