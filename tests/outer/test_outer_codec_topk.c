/* Codecs that keep the largest: the properties that codec_topk.h promises, at awkward sizes; which
 * values are kept, against a sort; and what decode refuses. */
#include "outer/codec_block.h"
#include "outer/codec_topk.h"
#include "tests/common/check.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static const struct codec codec_everything = RV_TOPK_CODEC("everything", 250, TOPK_GROUP);

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
		assert_true(!isnan(y[i]) && (k->k > 128 || is_exact(x[i], y[i], x[i] - y[i])));
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
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 1), 8 + 2 + 2 + 1);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 64), 8 + 2 + 2 + 1);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 65), 8 + 2 + 3 + 1);
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 4096), 8 + 2 + 96 + 16); /* .24 bits a value */
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 4097), 122 + 13);
	assert_int_equal(codec_topk32.encoded_bytes(&codec_topk32, 65536), 16 * (8 + 2 + 48 + 8));
	assert_int_equal(codec_topk128.encoded_bytes(&codec_topk128, 65536), 16 * (8 + 2 + 192 + 32));
}

/* Vectors written out by hand: the layout is a promise to other implementations. */
static void test_known_bytes(void **state) {
	(void)state;
	/* Of 192 values 3 are kept by topk64: 2, -8 and 6, whose mean magnitude is 5.33: low 2, high
	 * 7. */
	const uint8_t bytes[] = {0, 0, 0xe0, 0x40, 0, 0, 0, 0x40, 3, 0, 0x02, 0xf0, 0x03, 0xbf, 0x00, 0x1c};
	memset(x, 0, sizeof x);
	x[2] = 2;
	x[63] = -8;
	x[191] = 6;
	x[100] = 1;
	assert_int_equal(codec_topk64.encoded_bytes(&codec_topk64, 192), sizeof bytes);
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, 192, code, NULL), RV_OK);
	assert_memory_equal(code, bytes, sizeof bytes);
	memset(x, 0, sizeof x);
	memset(code2, 0, sizeof code2);
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, 192, code, NULL), RV_OK);
	assert_memory_equal(code, code2, sizeof bytes);
}

/* Nine like values and one of a hundred: the mean of the lower part is theirs, and the outlier is
 * alone; a value that a level would more than double stays behind. */
static void test_levels(void **state) {
	(void)state;
	memset(x, 0, sizeof x);
	for (size_t i = 0; i < 9; i++)
		x[i] = i == 0 ? 0.25f : 2;
	x[9] = -100;
	assert_int_equal(codec_topk64.encode(&codec_topk64, x, 64 * 10, code, NULL), RV_OK);
	assert_int_equal(codec_topk64.decode(&codec_topk64, code, 64 * 10, y, NULL), RV_OK);
	assert_true(y[9] == -100 && y[0] == 0);
	for (size_t i = 1; i < 9; i++)
		assert_true(fabsf(y[i] - 16.25f / 9) < 1e-4f);
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++)
		check_refuses_what_is_not_finite(kinds[k].codec, 4300, 331);
}

/* ---- hostile bytes ---- */

/* A valid encoding of 192 values in which 3 are sent (test_known_bytes), with some bytes
 * replaced. */
static void spoiled(const struct codec *c, size_t at, const void *bytes, size_t n, const char *why) {
	memset(x, 0, sizeof x);
	x[2] = 2;
	x[63] = -8;
	x[191] = 6;
	assert_int_equal(c->encode(c, x, 192, code, NULL), RV_OK);
	memcpy(code + at, bytes, n);
	check_refused(c, code, 192, why);
}

static void test_refuses_corrupt_bytes(void **state) {
	(void)state;
	const struct codec *c = &codec_topk64;
	spoiled(c, 8, "\4", 1, "at most 3 of 192");
	spoiled(c, 9, "\1", 1, "at most 3 of 192");
	spoiled(c, 10, "\2\x20\0", 3, "index 2 after 2: must ascend"); /* a duplicate */
	spoiled(c, 10, "\x40\xf0", 2, "index 63 after 64: must ascend");
	spoiled(c, 13, "\xc0", 1, "index 192, there are 192");
	spoiled(c, 14, "\x0f", 1, "there are 192");
	spoiled(c, 14, "\x10", 1, "more indices");
	spoiled(c, 15, "\x5c", 1, "more codes");
	spoiled(c, 8, "\2", 1, "more indices");
	const float bad[] = {NAN, INFINITY, -7, 0, 0x1p-127f, 1.5f, 0x1.00001p3f};
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		spoiled(c, 0, &bad[i], 4, "levels"); /* 1.5: below the low one */
	const float bad_low[] = {NAN, INFINITY, -2, 0, -0.0f, 0x1p-127f, 7, 8, 0x1.00001p1f};
	for (size_t i = 0; i < COUNT_OF(bad_low); i++)
		spoiled(c, 4, &bad_low[i], 4, "levels"); /* 0: but one value is sent as it */
	spoiled(c, 15, "\x1d", 1, "levels");         /* none is low */
	spoiled(c, 15, "\x08", 1, "levels");         /* none is high */
	memset(code, 0, sizeof code);
	code[3] = 0x40;
	check_refused(c, code, 192, "levels"); /* a level, and nothing sent */
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
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_refuses_what_is_not_finite),
		cmocka_unit_test(test_refuses_corrupt_bytes),
		cmocka_unit_test(test_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
