/* Partial sums between rows: exact, one form for each vector, short where they are sparse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "outer/partial_sum.h"
#include "tests/common/check.h"

enum { MOST = 5000 };

static float values[MOST], back[MOST];
static uint8_t packed[MOST * sizeof(float)], other[MOST * sizeof(float)];

static size_t pack(size_t n) {
	return partial_sum_pack((const uint8_t *)values, n, packed);
}

static enum rv_err unpack(const uint8_t *in, size_t bytes, size_t n) {
	struct rv_errtext et = {0};
	const enum rv_err e = partial_sum_unpack(in, bytes, n, (uint8_t *)back, &et);
	assert_int_equal(e != RV_OK, et.text[0] != 0);
	return e;
}

/* Makes n values of which one in `every` is not zero. */
static void draw(struct rv_rng *rng, size_t n, uint64_t every) {
	static const float odd[] = {-0.0f, INFINITY, 1e-45f, -3e38f};
	for (size_t i = 0; i < n; i++) {
		const float value = rv_rng_below(rng, 9) == 0 ? odd[rv_rng_below(rng, 4)] : (float)rv_rng_normal(rng);
		values[i] = rv_rng_below(rng, every) == 0 ? value : 0;
	}
}

static void test_every_bit_comes_back(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(44, 7);
	for (int turn = 0; turn < 3000; turn++) {
		const size_t n = 1 + rv_rng_below(&rng, turn % 3 == 0 ? MOST : 130);
		draw(&rng, n, 1 + rv_rng_below(&rng, 60));
		const size_t bytes = pack(n);
		assert_in_range(bytes, 1, n * sizeof(float));
		memset(back, 0xaa, sizeof back);
		assert_int_equal(unpack(packed, bytes, n), RV_OK);
		assert_memory_equal(back, values, n * sizeof(float));
	}
}

/* One in 21, as in a row of three with topk64: 1 / 8 bit for the upper map, 1 for each byte of the
 * lower one that is not empty, 32 for each value. */
static void test_sparse_sums_are_short(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(44, 8);
	draw(&rng, 4096, 21);
	assert_in_range(pack(4096), 800, 4096 * sizeof(float) / 13);
	memset(values, 0, sizeof values);
	assert_int_equal(pack(4096), 64);
	for (size_t i = 0; i < 4096; i++)
		values[i] = 1;
	assert_int_equal(pack(4096), 4096 * sizeof(float));
}

/* Whatever is accepted is what pack writes of what it holds. */
static void test_there_is_one_form_for_each_vector(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(44, 9);
	int accepted = 0;
	for (int turn = 0; turn < 20000; turn++) {
		const size_t n = 1 + rv_rng_below(&rng, 140);
		draw(&rng, n, 1 + rv_rng_below(&rng, 30));
		size_t bytes = pack(n);
		if (rv_rng_below(&rng, 3) == 0)
			bytes -= rv_rng_below(&rng, bytes);
		else
			packed[rv_rng_below(&rng, bytes)] ^= (uint8_t)(1u << rv_rng_below(&rng, 8));
		if (unpack(packed, bytes, n) != RV_OK)
			continue;
		accepted++;
		assert_int_equal(partial_sum_pack((const uint8_t *)back, n, other), bytes);
		assert_memory_equal(other, packed, bytes);
	}
	assert_true(accepted > 100);
}

static void test_what_nobody_packs_is_refused(void **state) {
	(void)state;
	const uint8_t zero_value[] = {1, 1, 0, 0, 0, 0}, past[] = {1, 0x80, 0, 0, 0x80, 0x3f}, empty_byte[] = {1, 0};
	const uint8_t upper_past[] = {4, 1, 0, 0, 0x80, 0x3f}, dense[5 * sizeof(float)] = {0};
	assert_int_equal(unpack(zero_value, sizeof zero_value, 5), RV_E_CORRUPT);
	assert_int_equal(unpack(past, sizeof past, 5), RV_E_CORRUPT);
	assert_int_equal(unpack(empty_byte, sizeof empty_byte, 5), RV_E_CORRUPT);
	assert_int_equal(unpack(upper_past, sizeof upper_past, 5), RV_E_CORRUPT);
	assert_int_equal(unpack(dense, sizeof dense, 5), RV_E_CORRUPT); /* zeros have a shorter form */
	assert_int_equal(unpack(dense, sizeof dense, 4), RV_E_CORRUPT); /* too long */
	assert_int_equal(unpack(dense, 0, 5), RV_E_CORRUPT);
	assert_int_equal(unpack(dense, 1, 5), RV_OK);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_bit_comes_back),
		cmocka_unit_test(test_sparse_sums_are_short),
		cmocka_unit_test(test_there_is_one_form_for_each_vector),
		cmocka_unit_test(test_what_nobody_packs_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
