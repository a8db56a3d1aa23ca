/* test_worker_line_meter.c: what a line carries: the fastest window, the second best of rounds,
 * caps. */
#include "tests/common/check.h"
#include "worker/mesh/line_meter.h"

enum { MS = 1000, S = 1000000 };

struct line {
	struct line_meter meter;
	struct line_counts at;
	int64_t now_us;
};

/* So many milliseconds at these rates, looked at every 50 ms. */
static void carry(struct line *l, int ms, uint64_t up, uint64_t down) {
	for (int t = 0; t < ms; t += 50) {
		l->now_us += 50 * MS;
		l->at.tx_bytes += up / 20;
		l->at.rx_bytes += down / 20;
		line_meter_sample(&l->meter, l->now_us, l->at);
	}
}

static void round_at(struct line *l, int ms, uint64_t up, uint64_t down) {
	line_meter_begin(&l->meter, l->now_us, l->at);
	carry(l, ms, up, down);
	line_meter_end(&l->meter, l->now_us, l->at);
	carry(l, 1000, 0, 0); /* training */
}

static void test_nothing_is_known_at_first(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	assert_int_equal(line_meter_up(&l.meter, 0), 0);
	round_at(&l, 500, 1000, 1000); /* next to nothing was sent */
	assert_int_equal(line_meter_up(&l.meter, 0), 0);
	assert_int_equal(line_meter_down(&l.meter, 1000000), 0);
}

static void test_the_fastest_window_counts(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	line_meter_begin(&l.meter, l.now_us, l.at);
	carry(&l, 2000, 100000, 4000000); /* waiting for others */
	carry(&l, 1000, 2000000, 100000);
	carry(&l, 2000, 0, 0);
	line_meter_end(&l.meter, l.now_us, l.at);
	assert_in_range(line_meter_up(&l.meter, 0), 1900000, 2000000);
	assert_in_range(line_meter_down(&l.meter, 0), 3900000, 4000000);
}

/* A queue of 50 ms, and sockets, take a burst; then the line's rate is what there is. */
static void test_a_burst_is_no_rate(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	line_meter_begin(&l.meter, l.now_us, l.at);
	carry(&l, 200, 20000000, 20000000);
	carry(&l, 2800, 10000000, 10000000);
	line_meter_end(&l.meter, l.now_us, l.at);
	assert_in_range(line_meter_up(&l.meter, 0), 9900000, 12000000);
	assert_in_range(line_meter_down(&l.meter, 0), 9900000, 12000000);
}

static void test_a_short_all_reduce_counts_as_a_whole(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	round_at(&l, 100, 10000000, 20000000);
	assert_in_range(line_meter_up(&l.meter, 0), 9900000, 10000000);
	assert_in_range(line_meter_down(&l.meter, 0), 19900000, 20000000);
}

static void test_the_second_best_of_rounds(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	for (int i = 0; i < 4; i++)
		round_at(&l, 1000, 1000000, 1000000);
	round_at(&l, 1000, 50000000, 1000); /* once is not a line */
	assert_in_range(line_meter_up(&l.meter, 0), 990000, 1000000);
	assert_in_range(line_meter_down(&l.meter, 0), 990000, 1000000);
	for (int i = 0; i < 4; i++) /* it has become slower */
		round_at(&l, 1000, 250000, 250000);
	assert_in_range(line_meter_up(&l.meter, 0), 245000, 250000);
}

/* A slow member takes part in every other round: with it there is less to carry. */
static void test_rounds_that_a_slow_member_held_up_hide_nothing(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	for (int i = 0; i < 10; i++) {
		round_at(&l, 1000, i % 2 ? 10000000 : 3000000, i % 2 ? 9000000 : 2000000);
		if (i < 3)
			continue;
		assert_in_range(line_meter_up(&l.meter, 0), 9900000, 10000000);
		assert_in_range(line_meter_down(&l.meter, 0), 8900000, 9000000);
	}
}

static void test_caps(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	round_at(&l, 1000, 1000000, 2000000);
	assert_int_equal(line_meter_up(&l.meter, 300000), 300000);
	assert_int_equal(line_meter_down(&l.meter, 300000), 300000);
	assert_in_range(line_meter_up(&l.meter, 3000000), 990000, 1000000);
}

/* A later attempt of the same round begins while the first is being measured. */
static void test_begin_twice_is_one_measurement(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	line_meter_begin(&l.meter, l.now_us, l.at);
	carry(&l, 500, 1000000, 1000000);
	line_meter_begin(&l.meter, l.now_us, l.at);
	line_meter_end(&l.meter, l.now_us, l.at);
	assert_in_range(line_meter_up(&l.meter, 0), 990000, 1000000);
	line_meter_end(&l.meter, l.now_us + S, l.at); /* not under way */
	assert_in_range(line_meter_up(&l.meter, 0), 990000, 1000000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_at_first),
		cmocka_unit_test(test_the_fastest_window_counts),
		cmocka_unit_test(test_a_burst_is_no_rate),
		cmocka_unit_test(test_a_short_all_reduce_counts_as_a_whole),
		cmocka_unit_test(test_the_second_best_of_rounds),
		cmocka_unit_test(test_rounds_that_a_slow_member_held_up_hide_nothing),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_begin_twice_is_one_measurement),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
