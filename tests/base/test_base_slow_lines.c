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

/* Rounds in which a member sends more than its line can, to show what it carries. */
static bool shows(uint32_t member, uint64_t round) {
	return (round / 2 + member) % 8 == 0;
}

/* 8 MB up at 1 MB/s take 8 s; a mean comes down in 2 s. */
static const struct slow_lines uplink = {.payload_bytes = 8000000,
										 .sent_bytes = 8000000,
										 .mean_bytes = 8000000,
										 .n_steps = 3,
										 .step_bytes = {4200000, 450000, 220000}};
static const struct slow_line asymmetric = {1000000, 4000000};

static void test_the_first_codec_that_makes_the_deadline(void **state) {
	(void)state;
	const struct {
		int64_t deadline_us;
		int step;
	} cases[] = {{8 * S, -1}, {8 * S - 1, 0}, {4200000, 0}, {4199999, 1}, {2 * S, 1}, {1, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(slow_lines_step(&uplink, cases[i].deadline_us, asymmetric, 1, 8), cases[i].step);
	/* As long as its mean needs, nothing is won by sending less: down 2 s, at 450 kB/s up 1 s. */
	assert_int_equal(slow_lines_step(&uplink, 1, (struct slow_line){1000000, 1000000}, 1, 8), -1);
	assert_int_equal(slow_lines_step(&uplink, 1, (struct slow_line){100000, 80000000}, 1, 8), 2); /* the last */
	assert_int_equal(slow_lines_step(&uplink, 1, (struct slow_line){0, 0}, 1, 8), -1);            /* not known */
	assert_int_equal(slow_lines_step(&whole, 1, asymmetric, 1, 8), -1);                           /* no codecs */
	assert_int_equal(slow_lines_step(&uplink, INT64_MAX, asymmetric, 1, 8), -1);
}

static void test_the_smaller_the_part(void **state) {
	(void)state;
	const struct {
		int64_t deadline_us;
		uint8_t part;
	} cases[] = {{8 * S, 0}, {8 * S - 1, 2}, {4 * S, 2}, {3 * S, 3}, {2 * S, 4}, {1, 4}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(slow_lines_part(&uplink, cases[i].deadline_us, asymmetric, 1, 8), cases[i].part);
	assert_int_equal(slow_lines_part(&uplink, 1, (struct slow_line){1000, 80000000}, 1, 8), SLOW_LINES_MOST);
	assert_int_equal(slow_lines_part(&uplink, 1, (struct slow_line){1000000, 1000000}, 1, 8), 0);
	assert_int_equal(slow_lines_part(&uplink, 1, (struct slow_line){0, 0}, 1, 8), 0);
	struct slow_lines few = uplink;
	few.chunks = 3; /* each contribution has one */
	assert_int_equal(slow_lines_part(&few, 2 * S, asymmetric, 1, 8), 3);
	few.chunks = 1;
	assert_int_equal(slow_lines_part(&few, 2 * S, asymmetric, 1, 8), 0);
	few.chunks = 6;
	few.fragments = 4;
	assert_int_equal(slow_lines_part(&few, 1, (struct slow_line){1000, 80000000}, 1, 8), 5);
	struct slow_lines six = uplink;
	six.fragments = 6; /* a round's fragment meets each residue */
	assert_int_equal(slow_lines_part(&six, 2 * S, asymmetric, 1, 8), 5);
}

/* While a member sends all, its downlink seems as slow as its uplink. */
static void test_at_times_a_downlink_shows_what_it_carries(void **state) {
	(void)state;
	const struct slow_line seems = {1000000, 1000000};
	int less = 0;
	for (uint64_t round = 0; round < 32; round++) {
		const bool tries = round < SLOW_LINES_FIRST || shows(1, round);
		assert_int_equal(slow_lines_step(&uplink, 2 * S, seems, 1, round), tries ? 1 : -1);
		assert_int_equal(slow_lines_part(&uplink, 2 * S, seems, 1, round), tries ? 4 : 0);
		less += tries;
	}
	assert_int_equal(less, SLOW_LINES_FIRST + 4);
}

/* Else a line that sends little would show little, and never be taken for faster again. */
static void test_in_two_of_sixteen_rounds_a_line_shows_more(void **state) {
	(void)state;
	for (uint32_t member = 0; member < 3; member++) {
		int more = 0;
		for (uint64_t round = 0; round < 16; round++) {
			const int step = slow_lines_step(&uplink, 2 * S, asymmetric, member, round);
			assert_int_equal(step, shows(member, round) ? 0 : 1);
			assert_int_equal(slow_lines_part(&uplink, 2 * S, asymmetric, member, round), shows(member, round) ? 2 : 4);
			more += shows(member, round);
		}
		assert_int_equal(more, 2);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_deadline_is_an_exchange_over_median_lines),
		cmocka_unit_test(test_one_known_line_is_compared_with_none),
		cmocka_unit_test(test_the_slower_the_fewer),
		cmocka_unit_test(test_turns_come_to_every_fragment),
		cmocka_unit_test(test_the_first_codec_that_makes_the_deadline),
		cmocka_unit_test(test_the_smaller_the_part),
		cmocka_unit_test(test_at_times_a_downlink_shows_what_it_carries),
		cmocka_unit_test(test_in_two_of_sixteen_rounds_a_line_shows_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
