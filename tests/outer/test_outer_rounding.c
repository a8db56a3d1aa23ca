/* Rounding at random: to a neighbour only, right on average, the same always, and in the format that decode accepts. */
#include "base/registries.h"
#include "outer/codec.h"
#include "outer/codec_block.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = LARGEST_SIZE, BYTES_CAP = 5 * N };

static float x[N], y[N], nearest[N], again[N];
static uint8_t code[BYTES_CAP], code2[BYTES_CAP];

static const struct codec *rounding_codec(int i) {
	int found = 0;
	for (const struct codec *const *c = codec_registry; *c; c++)
		if ((*c)->encode_random && found++ == i)
			return *c;
	return NULL;
}

static bool is_sparse(const struct codec *c) {
	return codec_facts_of(c) & CODEC_SPARSE;
}

static void encode_random(const struct codec *c, size_t n, uint64_t round, float *out) {
	const struct codec_noise noise = codec_noise_of(1, round, 3);
	assert_int_equal(c->encode_random(x, n, &noise, code, NULL), RV_OK);
	assert_int_equal(c->decode(code, n, out, NULL), RV_OK);
}

static void test_who_rounds(void **state) {
	(void)state;
	for (int k = 0; rounding_codec(k); k++)
		assert_true(codec_facts_of(rounding_codec(k)) & CODEC_DRAWS);
	assert_null(codec_fp32.encode_random);
	assert_null(codec_q6sigma.encode_random);
	assert_null(codec_topk64_fp32.encode_random);
}

/* Canonical as rounded to nearest; and a value that the codec has is that value. */
static void test_format(void **state) {
	(void)state;
	for (int k = 0; rounding_codec(k); k++) {
		const struct codec *c = rounding_codec(k);
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
			for (int any = 0; any < 2; any++) {
				const size_t n = awkward_sizes[s];
				any ? fill_any_finite(x, n, s) : fill_normal(x, n, s);
				encode_random(c, n, s, y);
				assert_int_equal(c->encode(y, n, code2, NULL), RV_OK);
				assert_memory_equal(code, code2, c->encoded_bytes(n));
				memcpy(x, y, n * sizeof *x);
				encode_random(c, n, s + 100, again);
				assert_memory_equal(y, again, n * sizeof *x);
			}
	}
}

/* Values of full range that the codec has, also where it has them rounded: no draw moves them. */
static void test_what_the_codec_has_stays(void **state) {
	(void)state;
	enum { LEN = 4096, DRAWS = 20 };
	for (int k = 0; rounding_codec(k); k++) {
		const struct codec *c = rounding_codec(k);
		struct rv_rng r = rv_rng_of(4, 4);
		for (size_t i = 0; i < LEN; i++)
			x[i] = (float)(2 * rv_rng_double(&r) - 1);
		encode_random(c, LEN, 0, y);
		memcpy(x, y, LEN * sizeof *x);
		for (uint64_t round = 1; round <= DRAWS; round++) {
			encode_random(c, LEN, round, again);
			assert_memory_equal(y, again, LEN * sizeof *y);
		}
	}
}

/* Zero stays zero, signs stay, and where nearest rounding gives code c, random gives a neighbour of the value. */
static void test_neighbours(void **state) {
	(void)state;
	static const float levels[] = {0, 1, 2, 4, 8, 16, 32, 64};
	for (int k = 0; rounding_codec(k); k++) {
		const struct codec *c = rounding_codec(k);
		const float top = c == &codec_e3m0 ? 64 : (float)codec_even_steps(c);
		if (top == 0)
			continue;
		for (size_t i = 0; i < 1000; i++)
			x[i] = top * sinf((float)i); /* scale 1 */
		for (size_t i = 0; i < 1000; i += 100)
			x[i] = i % 200 ? -top : top;
		x[1] = x[511] = 0;
		encode_random(c, 1000, 5, y);
		for (size_t i = 0; i < 1000; i++) {
			float below = floorf(fabsf(x[i])), above = ceilf(fabsf(x[i]));
			for (size_t l = 0; c == &codec_e3m0 && l + 1 < COUNT_OF(levels); l++)
				if (levels[l] <= fabsf(x[i]) && fabsf(x[i]) <= levels[l + 1]) {
					below = levels[l];
					above = levels[l + 1];
				}
			assert_true(fabsf(y[i]) == below || fabsf(y[i]) == above);
			assert_true(y[i] == 0 || (y[i] < 0) == (x[i] < 0));
		}
		assert_true(y[1] == 0 && y[511] == 0 && y[0] == top && y[100] == -top);
	}
}

/* How far apart the neighbours of a value are. */
static double step_of(const struct codec *c, double value, double most) {
	if (codec_even_steps(c) > 0)
		return most / codec_even_steps(c);
	return c == &codec_e3m0 ? fmax(value, most / 64) : most;
}

/* The mean over many rounds against the value: within 5 standard errors (of a draw between two neighbours) everywhere,
 * and without a common shift. What the sparse codecs do not keep they cannot be right about. */
static void test_right_on_average(void **state) {
	(void)state;
	enum { ROUNDS = 400, LEN = 512 };
	static double sum[LEN];
	for (int k = 0; rounding_codec(k); k++) {
		const struct codec *c = rounding_codec(k);
		double shift = 0, variance = 0, most = 0;
		struct rv_rng r = rv_rng_of(9, 9);
		memset(sum, 0, sizeof sum);
		for (size_t i = 0; i < LEN; i++) {
			x[i] = (float)rv_rng_normal(&r);
			most = fmax(most, fabs((double)x[i]));
		}
		for (uint64_t round = 0; round < ROUNDS; round++) {
			encode_random(c, LEN, round, y);
			for (size_t i = 0; i < LEN; i++)
				sum[i] += (double)y[i];
		}
		for (size_t i = 0; i < LEN; i++) {
			const double value = fabs((double)x[i]), step = step_of(c, value, most);
			const double error = fmin(step * step / 4, step * value) / ROUNDS, off = sum[i] / ROUNDS - (double)x[i];
			if (is_sparse(c) && y[i] == 0)
				continue;
			assert_true(fabs(off) <= 5 * sqrt(error) + 10 * step / ROUNDS);
			shift += off * (x[i] < 0 ? -1 : 1);
			variance += error;
		}
		assert_true(fabs(shift) <= 4 * sqrt(variance));
	}
}

/* int4 rounded to nearest has the same error in every round; at random the mean of many comes near. */
static void test_nearest_is_biased(void **state) {
	(void)state;
	double off_nearest = 0, off_random = 0;
	static double sum[N];
	memset(sum, 0, sizeof sum);
	fill_normal(x, 512, 3);
	assert_int_equal(codec_int4.encode(x, 512, code, NULL), RV_OK);
	assert_int_equal(codec_int4.decode(code, 512, nearest, NULL), RV_OK);
	for (uint64_t round = 0; round < 100; round++) {
		encode_random(&codec_int4, 512, round, y);
		for (size_t i = 0; i < 512; i++)
			sum[i] += (double)y[i] / 100;
	}
	for (size_t i = 0; i < 512; i++) {
		off_nearest += pow((double)nearest[i] - (double)x[i], 2);
		off_random += pow(sum[i] - (double)x[i], 2);
	}
	assert_true(off_random < off_nearest / 10);
}

/* The key says all: the same again, another worker or round not, and a value is rounded as its place in the vector
 * says, whatever chunk it is in. */
static void test_key(void **state) {
	(void)state;
	const struct codec_noise noise = codec_noise_of(1, 2, 3),
							 others[] = {codec_noise_of(2, 2, 3),
										 codec_noise_of(1, 3, 3),
										 codec_noise_of(1, 2, 4),
										 {.seed = 1, .stream = noise.stream, .first = 256}};
	for (int k = 0; rounding_codec(k); k++) {
		const struct codec *c = rounding_codec(k);
		fill_normal(x, 4096, 1);
		assert_int_equal(c->encode_random(x, 4096, &noise, code, NULL), RV_OK);
		assert_int_equal(c->encode_random(x, 4096, &noise, code2, NULL), RV_OK);
		assert_memory_equal(code, code2, c->encoded_bytes(4096));
		for (size_t i = 0; i < COUNT_OF(others); i++) {
			assert_int_equal(c->encode_random(x, 4096, &others[i], code2, NULL), RV_OK);
			assert_memory_not_equal(code, code2, c->encoded_bytes(4096));
		}
		if (is_sparse(c))
			continue;
		assert_int_equal(c->decode(code, 4096, y, NULL), RV_OK);
		struct codec_noise rest = noise;
		rest.first = 1024;
		assert_int_equal(c->encode_random(x + 1024, 3072, &rest, code2, NULL), RV_OK);
		assert_int_equal(c->decode(code2, 3072, again, NULL), RV_OK);
		assert_memory_equal(again, y + 1024, 3072 * sizeof *y);
	}
}

/* The numbers themselves are part of a run's bits. */
static void test_known_numbers(void **state) {
	(void)state;
	float u[8], v[8];
	uint32_t block[4];
	const struct codec_noise noise = codec_noise_of(7, 5, 2);
	assert_true(noise.stream == UINT64_C(0x7264000200000005) && noise.first == 0);
	codec_noise_fill(&noise, 2, u, 8);
	for (size_t i = 0; i < 8; i++) {
		rv_philox(7, noise.stream, (i + 2) / 4, block);
		assert_true(u[i] == (float)(block[(i + 2) % 4] >> 8) / 16777216);
		codec_noise_fill(&noise, 2 + i, &v[i], 1);
	}
	assert_memory_equal(u, v, sizeof u);
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	const struct codec_noise noise = codec_noise_of(1, 1, 1);
	for (int k = 0; rounding_codec(k); k++)
		for (int b = 0; b < 2; b++) {
			struct rv_errtext et = {0};
			fill_normal(x, 300, 1);
			x[277] = b ? NAN : -INFINITY;
			assert_int_equal(rounding_codec(k)->encode_random(x, 300, &noise, code, &et), RV_E_RANGE);
			assert_non_null(strstr(et.text, "value 277 is"));
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_rounds),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_what_the_codec_has_stays),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_right_on_average),
		cmocka_unit_test(test_nearest_is_biased),
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_known_numbers),
		cmocka_unit_test(test_refuses_what_is_not_finite),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
