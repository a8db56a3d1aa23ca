/* Codecs that keep the largest: the properties that codec_topk.h promises, at awkward sizes; which
 * values are kept, against a sort; and what decode refuses. */
#include "outer/codec_block.h"
#include "outer/codec_topk.h"
#include "tests/common/check.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct codec codec_everything = RV_TOPK_CODEC("everything", 250, TOPK_GROUP, 0);

static const size_t sizes[] = {1, 2, 31, 63, 64, 65, 127, 128, 129, 1023, 4095, 4096, 4097, 4160, 8192, 9000};
enum { LARGEST = 9000, BYTES_CAP = 8 * LARGEST };

static const struct kind {
	const struct codec *codec;
	size_t k;
} kinds[] = {
	{&codec_topk32, 32},
	{&codec_topk64, 64},
	{&codec_topk128, 128},
	{&codec_everything, TOPK_GROUP},
};

static float x[LARGEST], y[LARGEST];
static uint8_t code[BYTES_CAP], code2[BYTES_CAP];

/* ---- which are kept ---- */

struct ranked {
	uint32_t magnitude;
	size_t index;
};

static int by_rank(const void *a, const void *b) {
	const struct ranked *p = a, *q = b;
	if (p->magnitude != q->magnitude)
		return p->magnitude < q->magnitude ? 1 : -1;
	return p->index < q->index ? -1 : p->index > q->index;
}

/* kept (n): by sorting the whole group. */
static void kept_plainly(const struct kind *k, const float *v, size_t n, bool *kept) {
	static struct ranked order[TOPK_GROUP];
	for (size_t at = 0; at < n; at += TOPK_GROUP) {
		size_t len = n - at < TOPK_GROUP ? n - at : TOPK_GROUP;
		for (size_t i = 0; i < len; i++) {
			memcpy(&order[i].magnitude, v + at + i, 4);
			order[i].magnitude &= 0x7fffffff;
			order[i].index = i;
			kept[at + i] = false;
		}
		qsort(order, len, sizeof *order, by_rank);
		for (size_t i = 0; i < (len * k->k + TOPK_GROUP - 1) / TOPK_GROUP; i++)
			kept[at + order[i].index] = order[i].magnitude >= 0x00800000u;
	}
}

static void test_threshold(void **state) {
	(void)state;
	static uint32_t magnitude[TOPK_GROUP];
	static struct ranked order[TOPK_GROUP];
	struct rv_rng r = rv_rng_of(2, 2);
	for (int rep = 0; rep < 60; rep++) {
		const size_t n = 1 + rv_rng_below(&r, rep < 30 ? 40 : TOPK_GROUP);
		for (size_t i = 0; i < n; i++) { /* few different ones, or any */
			magnitude[i] = (uint32_t)rv_rng_below(&r, rep % 3 ? 0x7f800000 : 5);
			order[i] = (struct ranked){magnitude[i], i};
		}
		qsort(order, n, sizeof *order, by_rank);
		for (size_t count = 1; count <= n; count += 1 + n / 20)
			assert_int_equal(topk_threshold(magnitude, n, count), order[count - 1].magnitude);
	}
}

/* ---- properties ---- */

static bool is_exact(float whole, float part, float rest) {
	const double sum = (double)part + (double)rest, back = sum - (double)part;
	const double lost = ((double)part - (sum - back)) + ((double)rest - back);
	return sum == (double)whole && lost == 0;
}

/* Values are moved by no more than their magnitude, and what is left is exact. */
static void check_values(const struct kind *k, size_t n) {
	static bool kept[LARGEST];
	kept_plainly(k, x, n, kept);
	for (size_t i = 0; i < n; i++) {
		assert_true(kept[i] || y[i] == 0);
		assert_true(fabsf(x[i] - y[i]) <= fabsf(x[i]) && (y[i] == 0 || (y[i] < 0) == (x[i] < 0)));
		assert_true(!isnan(y[i]) && is_exact(x[i], y[i], x[i] - y[i]));
	}
}

static void check_properties(const struct kind *k, size_t n) {
	const struct codec *c = k->codec;
	assert_true(c->encoded_bytes(c, n) <= BYTES_CAP);
	assert_int_equal(c->encode(c, x, n, code, NULL), RV_OK);
	assert_int_equal(c->decode(c, code, n, y, NULL), RV_OK);
	check_values(k, n);
	check_one_encoding(c, x, n);
	check_odd(c, x, n);
}

static void test_properties(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++)
		for (size_t s = 0; s < COUNT_OF(sizes); s++) {
			fill_normal(x, sizes[s], s);
			check_properties(&kinds[k], sizes[s]);
			fill_any_finite(x, sizes[s], s);
			check_properties(&kinds[k], sizes[s]);
			for (size_t i = 0; i < sizes[s]; i++) /* many equals */
				x[i] = (float)(i * 7 % 5) - 2;
			check_properties(&kinds[k], sizes[s]);
		}
}

/* Where one value is far from all others, few are not 0, or all are nearly the same. */
static void test_odd_distributions(void **state) {
	(void)state;
	const float tops[] = {0, 1, FLT_MAX, FLT_MIN, FLT_TRUE_MIN, 0x1.fffffep0f, 1e30f};
	for (size_t k = 0; k < COUNT_OF(kinds); k++)
		for (size_t t = 0; t < COUNT_OF(tops); t++)
			for (int rest = 0; rest < 4; rest++) {
				for (size_t i = 0; i < 4200; i++)
					x[i] = rest == 0   ? 0
						   : rest == 1 ? 1e-10f
						   : rest == 2 ? tops[t]
									   : nextafterf(tops[t], 0) * (i % 2 ? 1 : -1);
				x[4100] = tops[t];
				x[17] = -tops[t];
				x[99] = tops[t] / 3;
				check_properties(&kinds[k], 4200);
			}
}

static void test_equals_first_come_first(void **state) {
	(void)state;
	for (size_t i = 0; i < TOPK_GROUP; i++)
		x[i] = i % 2 ? -3 : 3;
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, TOPK_GROUP, code, NULL), RV_OK);
	assert_int_equal(codec_topk64.decode(&codec_topk64, code, TOPK_GROUP, y, NULL), RV_OK);
	for (size_t i = 0; i < TOPK_GROUP; i++)
		assert_true(y[i] == (i < 64 ? x[i] : 0));
}

static void test_delta_and_decode_add(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++)
		for (size_t s = 0; s < COUNT_OF(sizes); s++)
			check_delta_and_decode_add(kinds[k].codec, sizes[s]);
}

/* ---- bytes ---- */

static void test_sizes(void **state) {
	(void)state;
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 0), 0);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 1), 2 + 1 + 1);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 64), 2 + 1 + 1);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 65), 2 + 2 + 1);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 4096), 2 + 61 + 8); /* .139 bits a value */
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 4097), 71 + 4);
	assert_int_equal(codec_topk32.encoded_bytes(&codec_topk32, 65536), 16 * (2 + 35 + 4));
	assert_int_equal(codec_topk128.encoded_bytes(&codec_topk128, 65536), 16 * (2 + 106 + 16));
}

enum { KNOWN = 192 };

/* Of KNOWN values 3 are sent by topk64: 5, -8 and 6, as their mean 6.33 in 8 bits, 6.34375. Their
 * distances are 2, 60 and 127: 1 01000, 01 00111 and 0001 11111. */
static void fill_known(void) {
	memset(x, 0, sizeof x);
	x[2] = 5;
	x[63] = -8;
	x[191] = 6;
}

/* Vectors written out by hand: the layout is a promise to other implementations. */
static void test_known_bytes(void **state) {
	(void)state;
	const uint8_t bytes[] = {0xcb, 0x40, 0x85, 0x1c, 0x3f, 0x02};
	fill_known();
	x[100] = 1;
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, KNOWN), sizeof bytes);
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, KNOWN, code, NULL), RV_OK);
	assert_memory_equal(code, bytes, sizeof bytes);
	assert_int_equal(codec_topk64.decode(&codec_topk64, code, KNOWN, y, NULL), RV_OK);
	assert_true(y[2] == 6.34375f && y[63] == -6.34375f && y[191] == 6.34375f && y[100] == 0);
	memset(x, 0, sizeof x);
	memset(code2, 0, sizeof code2);
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, KNOWN, code, NULL), RV_OK);
	assert_memory_equal(code, code2, sizeof bytes);
}

/* A value a hundred times the others is sent alone, and exactly; without it the others are, but one
 * that the level would more than double. */
static void test_one_level(void **state) {
	(void)state;
	memset(x, 0, sizeof x);
	for (size_t i = 0; i < 9; i++)
		x[i] = i == 0 ? 0.25f : 2;
	for (int outlier = 1; outlier >= 0; outlier--) {
		x[9] = outlier ? -100 : 0;
		assert_int_equal(codec_topk64.encode(&codec_topk64, x, 640, code, NULL), RV_OK);
		assert_int_equal(codec_topk64.decode(&codec_topk64, code, 640, y, NULL), RV_OK);
		assert_true(y[9] == x[9] && y[0] == 0);
		for (size_t i = 1; i < 9; i++)
			assert_true(y[i] == (outlier ? 0 : 2));
	}
}

/* Returns what the values sent take away from the energy of x (n <= TOPK_GROUP), if the j largest
 * are sent as their mean. */
static double taken_by(const float *sorted, size_t j) {
	double sum = 0;
	for (size_t i = 0; i < j; i++)
		sum += (double)sorted[i];
	return sum * sum / (double)j;
}

static int by_value(const void *a, const void *b) {
	const float *p = a, *q = b;
	return *p < *q ? 1 : *p > *q ? -1 : 0;
}

/* No other number of the largest values would take more, whatever their distribution. */
static void test_the_level_takes_most(void **state) {
	(void)state;
	static float sorted[TOPK_GROUP];
	struct rv_rng r = rv_rng_of(5, 6);
	for (int rep = 0; rep < 300; rep++) {
		double taken = 0, most = 0;
		const double power = 0.5 + (double)(rep % 8);
		for (size_t i = 0; i < TOPK_GROUP; i++) {
			x[i] = (float)pow(fabs(rv_rng_normal(&r)), power) * (i % 2 ? 1 : -1);
			sorted[i] = fabsf(x[i]);
		}
		assert_int_equal(codec_topk64.encode(&codec_topk64, x, TOPK_GROUP, code, NULL), RV_OK);
		assert_int_equal(codec_topk64.decode(&codec_topk64, code, TOPK_GROUP, y, NULL), RV_OK);
		for (size_t i = 0; i < TOPK_GROUP; i++)
			taken += (double)x[i] * (double)x[i] - (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
		qsort(sorted, TOPK_GROUP, sizeof *sorted, by_value);
		for (size_t j = 1; j <= 64; j++)
			most = taken_by(sorted, j) > most ? taken_by(sorted, j) : most;
		assert_true(taken <= most * 1.0001 && taken >= most * 0.97); /* a few may not fit */
	}
}

/* 64 places whose code is longer than the room: the smallest values stay behind, as few as can. */
static void test_places_that_do_not_fit(void **state) {
	(void)state;
	for (int far_is_least = 0; far_is_least < 2; far_is_least++) {
		memset(x, 0, sizeof x);
		for (size_t i = 0; i < 63; i++)
			x[i] = 1 + (float)i / 100;
		x[TOPK_GROUP - 1] = far_is_least ? 0.99f : 1.5f;
		assert_int_equal(codec_topk64.encode(&codec_topk64, x, TOPK_GROUP, code, NULL), RV_OK);
		assert_int_equal(codec_topk64.decode(&codec_topk64, code, TOPK_GROUP, y, NULL), RV_OK);
		assert_int_equal(y[TOPK_GROUP - 1] == 0, far_is_least);
		for (size_t i = 0; i < 63; i++) /* 64 x 6 + 126 bits of 488: four places less */
			assert_int_equal(y[i] == 0, !far_is_least && i < 4);
		check_one_encoding(&codec_topk64, x, TOPK_GROUP);
	}
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++)
		check_refuses_what_is_not_finite(kinds[k].codec, 4300, 331);
}

/* ---- hostile bytes ---- */

/* The encoding of test_known_bytes, with some bytes replaced. */
static void spoiled(size_t at, const void *bytes, size_t n, const char *why) {
	fill_known();
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, KNOWN, code, NULL), RV_OK);
	memcpy(code + at, bytes, n);
	check_refused(&codec_topk64, code, KNOWN, why);
}

static void test_refuses_corrupt_bytes(void **state) {
	(void)state;
	enum { LEVEL = 0, PLACES = 2, SIGNS = 5 };
	spoiled(PLACES, "\x41\x10\x04", 3, "bits behind the 3 places of at most 3");
	spoiled(PLACES, "\x01\x00\x80", 3, "bits behind the 1 places"); /* and no room for the rest of one */
	spoiled(PLACES, "\x00\x04\x00", 3, "place 320, there are 192");
	spoiled(PLACES + 2, "\x7f", 1, "bits behind the 3 places");
	spoiled(SIGNS, "\x0a", 1, "more signs than the 3");
	const uint16_t bad[] = {0, 0x8000, 0x7f80, 0x7fc0, 0xff80, 0xc0cb, 0x0040, 0x007f};
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		spoiled(LEVEL, &bad[i], sizeof bad[i], "of 3 values");
	memset(code, 0, sizeof code);
	code[1] = 0x40;
	check_refused(&codec_topk64, code, KNOWN, "of 0 values"); /* a level, and nothing sent */
	code[1] = 0;
	code[SIGNS] = 1;
	check_refused(&codec_topk64, code, KNOWN, "more signs than the 0");
}

/* Whatever the bytes are: refused, or decoded to finite values that encode to the same bytes. Bits
 * flipped in what is valid: most is refused. */
static void test_any_bytes(void **state) {
	(void)state;
	struct rv_rng r = rv_rng_of(11, 11);
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		const struct codec *c = kinds[k].codec;
		int accepted = 0;
		for (int rep = 0; rep < 3000; rep++) {
			const size_t n = 1 + rv_rng_below(&r, 300), bytes = c->encoded_bytes(c, n);
			fill_normal(x, n, (uint64_t)rep);
			assert_int_equal(c->encode(c, x, n, code, NULL), RV_OK);
			for (size_t flips = 1 + rv_rng_below(&r, 3); flips > 0; flips--)
				code[rv_rng_below(&r, bytes)] ^= (uint8_t)(1u << rv_rng_below(&r, 8));
			accepted += check_any_bytes(c, code, n);
		}
		assert_true(accepted > 100);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_odd_distributions),
		cmocka_unit_test(test_equals_first_come_first),
		cmocka_unit_test(test_delta_and_decode_add),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_known_bytes),
		cmocka_unit_test(test_one_level),
		cmocka_unit_test(test_the_level_takes_most),
		cmocka_unit_test(test_places_that_do_not_fit),
		cmocka_unit_test(test_refuses_what_is_not_finite),
		cmocka_unit_test(test_refuses_corrupt_bytes),
		cmocka_unit_test(test_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
