/* fp32: the values come back bit for bit, and what is not finite is refused both ways. */
#include "outer/codec.h"
#include "tests/common/check.h"
#include "tests/outer/codec_checks.h"
#include "tests/outer/vectors.h"

#include <stdio.h>
#include <string.h>

static const struct codec *const c = &codec_fp32;

static float x[LARGEST_SIZE], y[LARGEST_SIZE];
static uint8_t code[4 * LARGEST_SIZE + 1];

static void test_round_trip(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++) {
		size_t n = awkward_sizes[s];
		assert_int_equal(c->encoded_bytes(c, n), 4 * n);
		fill_any_finite(x, n, n);
		assert_int_equal(c->encode(c, x, n, code + 1, NULL), RV_OK); /* no alignment needed */
		assert_memory_equal(code + 1, x, 4 * n);
		assert_int_equal(c->decode(c, code + 1, n, y, NULL), RV_OK);
		assert_memory_equal(y, x, 4 * n);
	}
}

static void test_delta_and_decode_add(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
		check_delta_and_decode_add(c, awkward_sizes[s]);
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	const float bad[] = {NAN, INFINITY, -INFINITY};
	const size_t n = 2500;
	check_refuses_what_is_not_finite(c, n, 307);
	for (size_t b = 0; b < COUNT_OF(bad); b++)
		for (size_t at = 0; at < n; at += 307) {
			char place[32];
			snprintf(place, sizeof place, "value %zu is", at);
			fill_normal(x, n, 1);
			x[at] = bad[b];
			memcpy(code, x, 4 * n);
			check_refused(c, code, n, place);
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_delta_and_decode_add),
		cmocka_unit_test(test_refuses_what_is_not_finite),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
