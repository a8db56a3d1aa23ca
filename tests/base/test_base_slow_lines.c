/* How often a member with a slow line takes part. */
#include "base/slow_lines.h"
#include "tests/common/check.h"

enum { S = 1000000 };
static const struct slow_lines whole = {.payload_bytes = 4000000};

static void test_the_deadline_is_an_exchange_over_median_lines(void **state) {
	(void)state;
	const uint64_t rates[] = {10000000, 1000000, 10000000, 10000000, 0};
	/* 0.4 s a payload, 1.5 payloads each */
	assert_int_equal(slow_lines_deadline_us(&whole, rates, 4), 600000);
	assert_int_equal(slow_lines_deadline_us(&whole, rates, 5), 600000); /* an unknown line does not count */
	const uint64_t two[] = {10000000, 1000000}, eight[] = {10, 10, 10, 10, 10, 10, 10, 10};
	assert_int_equal(slow_lines_deadline_us(&whole, two, 2), 600000); /* 3/2 payloads at least */
	assert_int_equal(slow_lines_deadline_us(&(struct slow_lines){.payload_bytes = 40}, eight, 8), 7 * S);
	const struct slow_lines given = {.payload_bytes = 4000000, .deadline_us = 5 * S};
	assert_int_equal(slow_lines_deadline_us(&given, rates, 4), 5 * S);
}

static void test_one_known_line_is_compared_with_none(void **state) {
	(void)state;
	const uint64_t one[] = {0, 1000, 0};
	assert_int_equal(slow_lines_deadline_us(&whole, one, 3), INT64_MAX);
	assert_int_equal(slow_lines_every(&whole, INT64_MAX, 1), 1);
	const uint64_t absurd[] = {1, 1, 1};
	assert_true(slow_lines_deadline_us(&whole, absurd, 3) > 0);
}

static void test_the_slower_the_fewer(void **state) {
	(void)state;
	const int64_t deadline_us = 600000;
	const struct {
		uint64_t rate;
		uint32_t every;
	} cases[] = {{0, 1},       {10000000, 1}, {6666667, 1}, {6666666, 2}, {2000000, 4},
				 {1000000, 7}, {900000, 8},   {100000, 8},  {1, 8}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(slow_lines_every(&whole, deadline_us, cases[i].rate), cases[i].every);
	assert_int_equal(slow_lines_every(&whole, 0, 1), SLOW_LINES_MOST);
}

/* Otherwise its contribution would always be to the same few fragments. */
static void test_turns_come_to_every_fragment(void **state) {
	(void)state;
	for (uint32_t fragments = 1; fragments <= 64; fragments++) {
		const struct slow_lines s = {.payload_bytes = 4000000, .fragments = fragments};
		for (uint64_t rate = 100000; rate < 3500000; rate += 170000) {
			uint32_t every = slow_lines_every(&s, 1200000, rate);
			uint64_t met = 0;
			for (uint32_t turn = 0; turn < fragments; turn++)
				met |= UINT64_C(1) << (uint64_t)turn * every % fragments;
			assert_int_equal(__builtin_popcountll(met), fragments);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_deadline_is_an_exchange_over_median_lines),
		cmocka_unit_test(test_one_known_line_is_compared_with_none),
		cmocka_unit_test(test_the_slower_the_fewer),
		cmocka_unit_test(test_turns_come_to_every_fragment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
