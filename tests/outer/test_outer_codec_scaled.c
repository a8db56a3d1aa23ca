/* int8, int16 and int4: the properties that codec.h promises, at awkward sizes and at the ends of
 * fp32; and what decode refuses. */
#include "outer/codec.h"
#include "outer/float_bits.h"
#include "tests/common/check.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_CAP = LARGEST_SIZE * 3 };

/* The codec under test: each test runs for all of them. */
struct format {
	const struct codec *codec;
	int code_max;
	size_t bits;
	double scale_most;
	double slack;        /* of the error's bound, beyond half a step */
	double gauss_error;  /* at most, relative, on normal values */
	double gauss_cosine; /* at least */
	uint32_t past_most;  /* bits of the scale after the largest */
	const char *too_low; /* what refuses a code of -code_max - 1 */
};
static const struct format formats[] = {
	{&codec_int8, 127, 8, 0x1.0204p+121, 0x1p-14, 0.008, 0.9998, 0x7c010280, "128"},
	{&codec_int16, 32767, 16, 0x1.0001p+113, 0x1p-6, 3.2e-5, 0.999999999, 0x78000100, "32768"},
	{&codec_int4, 7, 4, 0x1.2492p+125, 0x1p-12, 0.13, 0.99, 0x7e124980, "negative zero"},
};
static const struct format *f;
static const struct codec *c;

static float x[LARGEST_SIZE], y[LARGEST_SIZE];
static uint8_t code[BYTES_CAP], code2[BYTES_CAP];

static float block_absmax(const float *v, size_t n, size_t i) {
	float most = 0;
	for (size_t j = i / c->block * c->block; j < n && j < i / c->block * c->block + c->block; j++)
		most = fmaxf(most, fabsf(v[j]));
	return most;
}

static size_t blocks_of(size_t n) {
	return (n + c->block - 1) / c->block;
}

/* Writes code i, little-endian, behind the scales; in ascending order of i. */
static void put_code(uint8_t *out, size_t blocks, size_t i, long value) {
	uint8_t *at = out + 4 * blocks + i * f->bits / 8;
	if (f->bits == 4) /* sign and magnitude, the first in the low half */
		*at = (uint8_t)((i % 2 ? *at & 15 : 0) | (labs(value) | (value < 0 ? 8 : 0)) << (i % 2 * 4));
	for (size_t byte = 0; byte < f->bits / 8; byte++)
		at[byte] = (uint8_t)((uint64_t)value >> 8 * byte);
}

/* The format as codec.h words it, in the plainest possible way: the oracle. */
static void encode_plainly(const float *v, size_t n, uint8_t *out) {
	size_t blocks = blocks_of(n);
	for (size_t b = 0; b < blocks; b++) {
		double absmax = block_absmax(v, n, b * c->block), scale = 0;
		if (absmax >= f->code_max * 0x1p-126) {
			int exponent;
			double m = frexp((float)((float)absmax / (float)f->code_max), &exponent); /* [0.5, 1) */
			scale = ldexp(floor(ldexp(m, 17) + 0.5), exponent - 17);
			scale = fmin(scale, f->scale_most);
		}
		float s = (float)scale, inverse = 1.0f / s;
		memcpy(out + 4 * b, &s, 4);
		for (size_t i = c->block * b; i < n && i < c->block * (b + 1); i++)
			put_code(out, blocks, i, scale > 0 ? lrintf(v[i] * inverse) : 0);
	}
}

static void check_properties(size_t n) {
	assert_int_equal(c->encode(c, x, n, code, NULL), RV_OK);
	encode_plainly(x, n, code2);
	assert_memory_equal(code, code2, c->encoded_bytes(c, n));
	assert_int_equal(c->decode(c, code, n, y, NULL), RV_OK);
	for (size_t i = 0; i < n; i++) {
		double absmax = block_absmax(x, n, i);
		double bound = absmax < f->code_max * 0x1p-126 ? absmax : absmax / (2 * f->code_max) * (1 + f->slack);
		assert_true(fabs((double)x[i] - (double)y[i]) <= bound);
		if (x[i] == 0)
			assert_true(y[i] == 0);
	}
	check_one_encoding(c, x, n);
	check_odd(c, x, n);
}

static void test_properties(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++) {
		size_t n = awkward_sizes[s];
		fill_normal(x, n, n);
		check_properties(n);
		fill_any_finite(x, n, n);
		check_properties(n);
	}
}

/* Blocks whose absmax sweeps all exponents, with significands around the rounding of the scale. */
static void test_every_magnitude(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(3, 3);
	for (int exponent = -149; exponent <= 127; exponent++)
		for (int rep = 0; rep < 8; rep++) {
			float top = (float)ldexp(1 + (rep & 1 ? rv_rng_double(&r) : 0x1p-23 * rep), exponent);
			top = isfinite(top) ? top : FLT_MAX;
			for (size_t i = 0; i < 300; i++)
				x[i] = (float)(top * (2 * rv_rng_double(&r) - 1));
			x[rep] = top;
			x[257] = -top;
			check_properties(300);
		}
}

static void test_extremes(void **state) {
	(void)state;
	const float least = (float)f->code_max * 0x1p-126f, most = (float)f->scale_most * (float)f->code_max;
	const float tops[] = {FLT_MAX, 0x1.fffffcp127f, most, FLT_MIN, FLT_TRUE_MIN, least, nextafterf(least, 0)};
	for (size_t t = 0; t < COUNT_OF(tops); t++) {
		memset(x, 0, sizeof x);
		x[5] = tops[t];
		x[6] = -tops[t] / 3;
		check_properties(300);
	}
	memset(x, 0, sizeof x);
	check_properties(300);
	uint8_t zeros[2 * 4 + 600] = {0};
	assert_memory_equal(code, zeros, c->encoded_bytes(c, 300));
}

/* The format's largest scale: its largest value is finite, that of the next 17-bit one is not. */
static void test_largest_scale(void **state) {
	(void)state;
	const float next = float_of_bits(f->past_most);
	assert_true((double)next > f->scale_most && (float_bits((float)f->scale_most) + 0x80) == f->past_most);
	assert_true(isfinite((float)f->code_max * (float)f->scale_most));
	assert_true(isinf((float)f->code_max * next));
}

static void test_sizes(void **state) {
	(void)state;
	assert_int_equal(c->encoded_bytes(c, 0), 0);
	assert_int_equal(c->encoded_bytes(c, 1), 4 + (f->bits + 7) / 8);
	assert_int_equal(c->encoded_bytes(c, c->block), 4 + c->block * f->bits / 8);
	assert_int_equal(c->encoded_bytes(c, c->block + 1), 8 + c->block * f->bits / 8 + (f->bits + 7) / 8);
	assert_int_equal(c->encoded_bytes(c, 65536), 65536 * f->bits / 8 + 65536 / c->block * 4);
}

/* Vectors written out by hand: the layouts are a promise to other implementations. */
static void test_known_bytes(void **state) {
	(void)state;
	const float v[] = {1.0f, -0.5f, 0, 127.0f / 4, -127.0f / 2};
	const uint8_t wanted[] = {0, 0, 0, 0x3f, 2, 0xff, 0, 64, 0x81}; /* scale 0.5; 63.5 rounds to even 64 */
	assert_int_equal(codec_int8.encode(&codec_int8, v, 5, code, NULL), RV_OK);
	assert_memory_equal(code, wanted, sizeof wanted);
	const float v16[] = {1.0f, -0.5f, 0, 0.75f, -32767.0f / 2};
	const uint8_t wanted16[] = {0, 0, 0, 0x3f, 2, 0, 0xff, 0xff, 0, 0, 2, 0, 1, 0x80}; /* 1.5 rounds to even 2 */
	assert_int_equal(codec_int16.encode(&codec_int16, v16, 5, code, NULL), RV_OK);
	assert_memory_equal(code, wanted16, sizeof wanted16);
	const float v4[] = {3.5f, -1.25f, 0, 0.75f, -3.5f}; /* scale 0.5; 2.5 rounds to even 2, 1.5 to 2 */
	const uint8_t wanted4[] = {0, 0, 0, 0x3f, 0xa7, 0x20, 0x0f};
	assert_int_equal(codec_int4.encode(&codec_int4, v4, 5, code, NULL), RV_OK);
	assert_memory_equal(code, wanted4, sizeof wanted4);
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	check_refuses_what_is_not_finite(c, 600, 31);
}

static void test_delta_and_decode_add(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
		check_delta_and_decode_add(c, awkward_sizes[s]);
}

static void set_scale(size_t block, uint32_t bits) {
	memcpy(code + 4 * block, &bits, 4);
}

static void test_refuses_corrupt_bytes(void **state) {
	(void)state;
	const uint32_t bad_scales[] = {0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000, 0x80000000, 0xbf000000,
								   0x00000080, 0x007fff80, 0x3f000001, 0x3f000040, 0x7f7fff80, f->past_most};
	char wanted[32];
	fill_normal(x, 600, 1);
	for (size_t b = 0; b < blocks_of(600); b++) {
		for (size_t i = 0; i < COUNT_OF(bad_scales); i++) {
			assert_int_equal(c->encode(c, x, 600, code, NULL), RV_OK);
			set_scale(b, bad_scales[i]);
			check_refused(c, code, 600, "scale");
		}
		assert_int_equal(c->encode(c, x, 600, code, NULL), RV_OK);
		set_scale(b, 0);
		check_refused(c, code, 600, "scale 0");
		assert_int_equal(c->encode(c, x, 600, code, NULL), RV_OK);
		put_code(code, blocks_of(600), c->block * b + 16, -f->code_max - 1);
		check_refused(c, code, 600, f->too_low);
		assert_int_equal(c->encode(c, x, 600, code, NULL), RV_OK);
		for (size_t i = 0; i < c->block && c->block * b + i < 600; i++)
			put_code(code, blocks_of(600), c->block * b + i, f->code_max - 1);
		snprintf(wanted, sizeof wanted, "must be %d", f->code_max);
		check_refused(c, code, 600, wanted);
	}
}

/* An odd number of codes of four bits leaves the last half byte 0. */
static void test_refuses_unused_bits(void **state) {
	(void)state;
	if (f->bits >= 8)
		return;
	fill_normal(x, 301, 1);
	assert_int_equal(c->encode(c, x, 301, code, NULL), RV_OK);
	code[c->encoded_bytes(c, 301) - 1] |= 0x10;
	check_refused(c, code, 301, "unused bits");
}

/* Whatever the bytes are: refused, or decoded to finite values that encode to the same bytes. */
static void test_any_bytes(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(11, 11);
	int accepted = 0;
	for (int rep = 0; rep < 20000; rep++) {
		size_t n = 1 + rv_rng_below(&r, 5);
		for (size_t i = 0; i < c->encoded_bytes(c, n); i++)
			code[i] = (uint8_t)rv_rng_u64(&r);
		code[0] &= 0x80;
		put_code(code, 1, 0, f->code_max);
		accepted += check_any_bytes(c, code, n);
	}
	assert_true(accepted > 1000);
}

/* The relative error of the whole vector on Gaussian values: 0.0070 measured with int8, 0.015
 * allowed to real outer gradients; 2.7e-5 with int16, 0.119 with int4. */
static void test_error_on_gaussian(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(5, 5);
	double signal = 0, dot = 0, decoded = 0;
	for (size_t i = 0; i < 4096; i++)
		x[i] = (float)rv_rng_normal(&r);
	assert_int_equal(c->encode(c, x, 4096, code, NULL), RV_OK);
	assert_int_equal(c->decode(c, code, 4096, y, NULL), RV_OK);
	for (size_t i = 0; i < 4096; i++) {
		signal += (double)x[i] * x[i];
		decoded += (double)y[i] * y[i];
		dot += (double)x[i] * y[i];
	}
	assert_true(codec_relative_error(c, x, 4096) < f->gauss_error);
	assert_true(dot / sqrt(signal * decoded) > f->gauss_cosine);
}

static int choose(void **state) {
	f = *state;
	c = f->codec;
	return 0;
}

int main(void) {
	int failed = 0;
	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		void *format = (void *)(uintptr_t)&formats[i];
#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, choose, NULL, format)
		const struct CMUnitTest tests[] = {
			TEST(test_properties),
			TEST(test_every_magnitude),
			TEST(test_extremes),
			TEST(test_largest_scale),
			TEST(test_sizes),
			TEST(test_known_bytes),
			TEST(test_refuses_what_is_not_finite),
			TEST(test_delta_and_decode_add),
			TEST(test_refuses_corrupt_bytes),
			TEST(test_refuses_unused_bits),
			TEST(test_any_bytes),
			TEST(test_error_on_gaussian),
		};
		failed += cmocka_run_group_tests_name(formats[i].codec->name, tests, NULL, NULL);
	}
	return failed;
}
