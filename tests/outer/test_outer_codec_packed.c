/* int4, e3m0 and int2: the properties that codec.h promises, at awkward sizes and at the ends of fp32; and what decode
 * refuses.
 */
#include "outer/codec.h"
#include "outer/float_bits.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = 128, BYTES_CAP = LARGEST_SIZE };

/* Relative error of the whole vector on Gaussian values: .119, .190 and .771 measured (int8: .0070). */
#define INT4_GAUSSIAN_CEILING 0.13
#define E3M0_GAUSSIAN_CEILING 0.20
#define INT2_GAUSSIAN_CEILING 0.80

/* What codec.h says of each, in the plainest possible way: the oracle. */
struct format {
	const struct codec *codec;
	unsigned bits;
	double code_max, scale_max, gaussian_ceiling;
	double magnitude[8];
};

static const struct format formats[] = {
	{&codec_int4, 4, 7, 0x1.2492p+125, INT4_GAUSSIAN_CEILING, {0, 1, 2, 3, 4, 5, 6, 7}},
	{&codec_e3m0, 4, 64, 0x1.ffffp+121, E3M0_GAUSSIAN_CEILING, {0, 1, 2, 4, 8, 16, 32, 64}},
	{&codec_int2, 2, 1, 0x1.ffffp+127, INT2_GAUSSIAN_CEILING, {0, 1}},
};

static float x[LARGEST_SIZE], y[LARGEST_SIZE];
static uint8_t code[BYTES_CAP], code2[BYTES_CAP];

static float block_absmax(const float *v, size_t n, size_t i) {
	float most = 0;
	for (size_t j = i / BLOCK * BLOCK; j < n && j < i / BLOCK * BLOCK + BLOCK; j++)
		most = fmaxf(most, fabsf(v[j]));
	return most;
}

static float scale_plainly(const struct format *f, float absmax) {
	if (absmax < f->code_max * 0x1p-126)
		return 0;
	int exponent;
	double m = frexp((double)(absmax / (float)f->code_max), &exponent); /* [0.5, 1) */
	return (float)fmin(ldexp(floor(ldexp(m, 17) + 0.5), exponent - 17), f->scale_max);
}

/* The magnitude nearest to r; a tie goes to the even integer (int4) or the larger one (e3m0). */
static unsigned nearest_plainly(const struct format *f, float r) {
	unsigned best = 0;
	for (unsigned m = 1; m < 1u << (f->bits - 1); m++) {
		double here = fabs((double)r - f->magnitude[m]), there = fabs((double)r - f->magnitude[best]);
		if (here < there || (here == there && (f->codec == &codec_e3m0 || m % 2 == 0)))
			best = m;
	}
	return best;
}

static void encode_plainly(const struct format *f, const float *v, size_t n, uint8_t *out) {
	size_t blocks = (n + BLOCK - 1) / BLOCK;
	memset(out, 0, 4 * blocks + (n * f->bits + 7) / 8);
	for (size_t i = 0; i < n; i++) {
		float scale = scale_plainly(f, block_absmax(v, n, i));
		memcpy(out + 4 * (i / BLOCK), &scale, 4);
		unsigned m = scale > 0 ? nearest_plainly(f, fabsf(v[i]) * (1.0f / scale)) : 0;
		unsigned signed_code = m | (m > 0 && v[i] < 0 ? 1u << (f->bits - 1) : 0);
		out[4 * blocks + i * f->bits / 8] |= (uint8_t)(signed_code << (i * f->bits % 8));
	}
}

static double bound(const struct format *f, double value, double absmax) {
	if (absmax < f->code_max * 0x1p-126)
		return absmax;
	double step = f->codec == &codec_e3m0 ? fmax(fabs(value) / 3, absmax / 128) : absmax / (2 * f->code_max);
	return step * (1 + 0x1p-12);
}

static void check_properties(const struct format *f, size_t n) {
	const struct codec *c = f->codec;
	assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
	encode_plainly(f, x, n, code2);
	assert_memory_equal(code, code2, c->encoded_bytes(n));
	assert_int_equal(c->decode(code, n, y, NULL), RV_OK);
	for (size_t i = 0; i < n; i++) {
		assert_true(fabs((double)x[i] - (double)y[i]) <= bound(f, (double)x[i], (double)block_absmax(x, n, i)));
		assert_true(isfinite(y[i]) && (x[i] != 0 || y[i] == 0));
	}
	check_one_encoding(c, x, n);
	check_odd(c, x, n);
}

static void test_properties(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(formats); k++)
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++) {
			fill_normal(x, awkward_sizes[s], s);
			check_properties(&formats[k], awkward_sizes[s]);
			fill_any_finite(x, awkward_sizes[s], s);
			check_properties(&formats[k], awkward_sizes[s]);
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
			for (size_t i = 0; i < 150; i++)
				x[i] = (float)((double)top * (2 * rv_rng_double(&r) - 1));
			x[rep] = top;
			x[130] = -top;
			for (size_t k = 0; k < COUNT_OF(formats); k++)
				check_properties(&formats[k], 150);
		}
}

static void test_extremes(void **state) {
	(void)state;
	const float tops[] = {0, FLT_MAX, 0x1.fffffcp127f, FLT_MIN, FLT_TRUE_MIN, 7 * 0x1p-126f, 64 * 0x1p-126f};
	for (size_t k = 0; k < COUNT_OF(formats); k++)
		for (size_t t = 0; t < COUNT_OF(tops); t++)
			for (int below = 0; below < 2; below++) {
				memset(x, 0, sizeof x);
				x[5] = below ? nextafterf(tops[t], 0) : tops[t];
				x[6] = -tops[t] / 3;
				check_properties(&formats[k], 150);
			}
}

/* The largest scale: code_max of it is finite, code_max of the next 17-bit one is not. */
static void test_largest_scale(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(formats); k++) {
		int exponent;
		frexp(formats[k].scale_max, &exponent);
		double next = formats[k].scale_max + ldexp(1, exponent - 17);
		assert_true(formats[k].code_max * formats[k].scale_max <= (double)FLT_MAX);
		assert_true(formats[k].code_max * next > (double)FLT_MAX);
	}
}

static void test_sizes(void **state) {
	(void)state;
	const size_t sizes[][3] = {{0, 0, 0},     {1, 5, 5},         {127, 4 + 64, 4 + 32},
							   {128, 68, 36}, {129, 73, 8 + 33}, {65536, 2048 + 32768, 2048 + 16384}};
	for (size_t k = 0; k < COUNT_OF(formats); k++)
		for (size_t i = 0; i < COUNT_OF(sizes); i++)
			assert_int_equal(formats[k].codec->encoded_bytes(sizes[i][0]), sizes[i][formats[k].bits == 4 ? 1 : 2]);
}

/* Vectors written out by hand: the layout is a promise to other implementations. */
static void test_known_bytes(void **state) {
	(void)state;
	const float even[] = {3.5f, -1.25f, 0, 0.75f, -3.5f}; /* scale 0.5; 2.5 rounds to even 2, 1.5 to 2 */
	const uint8_t int4[] = {0, 0, 0, 0x3f, 0xa7, 0x20, 0x0f};
	assert_int_equal(codec_int4.encode(even, 5, code, NULL), RV_OK);
	assert_memory_equal(code, int4, sizeof int4);
	const float powers[] = {32, -0.25f, 0.2f, 12, -16}; /* scale 0.5; 0.25 is halfway to 0, 12 halfway to 16 */
	const uint8_t e3m0[] = {0, 0, 0, 0x3f, 0x97, 0x60, 0x0e};
	assert_int_equal(codec_e3m0.encode(powers, 5, code, NULL), RV_OK);
	assert_memory_equal(code, e3m0, sizeof e3m0);
	const float ternary[] = {0.25f, -0.5f, 0.3f, -0.2f, 0.5f}; /* scale 0.5; 0.25 is halfway, and becomes 0 */
	const uint8_t int2[] = {0, 0, 0, 0x3f, 0x1c, 0x01};
	assert_int_equal(codec_int2.encode(ternary, 5, code, NULL), RV_OK);
	assert_memory_equal(code, int2, sizeof int2);
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(formats); k++)
		check_refuses_what_is_not_finite(formats[k].codec, 300, 31);
}

static void test_delta_and_decode_add(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(formats); k++)
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
			check_delta_and_decode_add(formats[k].codec, awkward_sizes[s]);
}

static void test_refuses_corrupt_bytes(void **state) {
	(void)state;
	const uint32_t bad_scales[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0xbf000000, 0x00000080,
								   0x007fff80, 0x3f000001, 0x3f000040, 0x7f7fff80, 0x7e124980};
	const size_t n = 301, blocks = 3;
	for (size_t k = 0; k < COUNT_OF(formats); k++)
		for (size_t b = 0; b < blocks; b++) {
			const struct codec *c = formats[k].codec;
			const unsigned bits = formats[k].bits;
			uint8_t *first = code + 4 * blocks + b * BLOCK * bits / 8, *last = code + 4 * blocks + n * bits / 8;
			const uint8_t low = bits == 4 ? 0x11 : 0; /* all codes, none the largest */
			fill_normal(x, n, 1);
			for (size_t i = 0; i < COUNT_OF(bad_scales); i++) {
				if (bad_scales[i] >= 0x7e000000 && bad_scales[i] < 0x7f800000 && formats[k].code_max == 1)
					continue; /* too large for the others' codes only */
				assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
				memcpy(code + 4 * b, &bad_scales[i], 4);
				check_refused(c, code, n, "scale");
			}
			assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
			memset(code + 4 * b, 0, 4);
			check_refused(c, code, n, "scale 0");
			assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
			first[3] = 0x81;
			check_refused(c, code, n, "negative zero");
			assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
			memset(first, low, (b == blocks - 1 ? n - b * BLOCK : BLOCK) * bits / 8);
			*last &= 0x01 & low;
			check_refused(c, code, n, bits == 4 ? "must be 7" : "must be 1");
			assert_int_equal(c->encode(x, n, code, NULL), RV_OK);
			*last |= 0x10;
			check_refused(c, code, n, "unused bits");
		}
}

/* Whatever the bytes are: refused, or decoded to finite values that encode to the same bytes. */
static void test_any_bytes(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(11, 11);
	for (size_t k = 0; k < COUNT_OF(formats); k++) {
		const struct codec *c = formats[k].codec;
		int accepted = 0;
		for (int rep = 0; rep < 40000; rep++) {
			size_t n = 2 + 2 * rv_rng_below(&r, 3);
			for (size_t i = 0; i < c->encoded_bytes(n); i++)
				code[i] = (uint8_t)rv_rng_u64(&r);
			code[0] &= 0x80;
			code[4] |= 7;
			accepted += check_any_bytes(c, code, n);
		}
		assert_true(accepted > 1000);
	}
}

static void test_error_on_gaussian(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(formats); k++) {
		struct rv_rng r = rv_rng_of(5, 5);
		for (size_t i = 0; i < 4096; i++)
			x[i] = (float)rv_rng_normal(&r);
		const double error = codec_relative_error(formats[k].codec, x, 4096);
		print_message("%s: relative error %.4f\n", formats[k].codec->name, error);
		assert_true(error < formats[k].gaussian_ceiling);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_every_magnitude),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_largest_scale),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_known_bytes),
		cmocka_unit_test(test_refuses_what_is_not_finite),
		cmocka_unit_test(test_delta_and_decode_add),
		cmocka_unit_test(test_refuses_corrupt_bytes),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_error_on_gaussian),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
