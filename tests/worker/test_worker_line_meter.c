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
	assert_in_range(line_meter_up(&l.meter, 0), 9900000, 12500000);
	assert_in_range(line_meter_down(&l.meter, 0), 9900000, 12500000);
}

static void test_a_short_all_reduce_counts(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	round_at(&l, 100, 10000000, 20000000);
	assert_in_range(line_meter_up(&l.meter, 0), 9900000, 10000000);
	assert_in_range(line_meter_down(&l.meter, 0), 19900000, 20000000);
}

/* An all-reduce of 0.65 s: the others answer after 200 ms, their contributions come, the slowest
 * one is waited for, the means come, and the commit 150 ms later. */
static void test_waiting_is_no_rate(void **state) {
	(void)state;
	struct line l = {.now_us = S};
	line_meter_begin(&l.meter, l.now_us, l.at);
	carry(&l, 200, 0, 0);
	carry(&l, 50, 12000000, 11000000);
	carry(&l, 200, 0, 0);
	carry(&l, 50, 12000000, 11000000);
	carry(&l, 150, 0, 0);
	line_meter_end(&l.meter, l.now_us, l.at);
	assert_in_range(line_meter_up(&l.meter, 0), 11900000, 12100000);
	assert_in_range(line_meter_down(&l.meter, 0), 10900000, 11100000);
}

/* The shape of a short round of four, one of whom has 0.6 MB/s up, at a line of 12/6 MB/s down/up:
 * bytes at turns of the loop, ms after the begin. The slow one's contribution, and the means that
 * wait for it, come one after the other. */
static void test_a_shape_with_a_slow_member(void **state) {
	(void)state;
	static const struct {
		int ms;
		uint64_t up_kb, down_kb;
	} shape[] = {{3, 0, 0},         {41, 0, 0},        {47, 12, 9},      {61, 90, 130},    {83, 221, 390},
				 {104, 344, 640},   {129, 492, 930},   {152, 630, 1190}, {171, 733, 1380}, {196, 760, 1400},
				 {260, 760, 1440},  {330, 790, 1485},  {420, 842, 1540}, {510, 900, 1600}, {640, 975, 1690},
				 {760, 1040, 1775}, {815, 1040, 1778}, {900, 1040, 1778}};
	struct line l = {.now_us = S};
	const int n = sizeof shape / sizeof shape[0];
	line_meter_begin(&l.meter, l.now_us, l.at);
	for (int i = 0; i < n; i++) {
		const struct line_counts at = {shape[i].up_kb * 1000, shape[i].down_kb * 1000};
		line_meter_sample(&l.meter, S + shape[i].ms * MS, at);
		if (i == n - 1)
			line_meter_end(&l.meter, S + shape[i].ms * MS, at);
	}
	assert_in_range(line_meter_up(&l.meter, 0), 5500000, 6500000);
	assert_in_range(line_meter_down(&l.meter, 0), 11000000, 13000000);
}

/* A liar among four owns twice its share. It sends what it owes, half of what comes here, after all
 * others, for ten seconds, and reads as slowly. In short rounds and in long ones the line stays
 * what it is. */
static void test_a_peer_that_holds_back_makes_no_line_slow(void **state) {
	(void)state;
	for (int ms = 100; ms <= 6400; ms *= 2) {
		struct line l = {.now_us = S};
		for (int round = 0; round < 2 * LINE_METER_ROUNDS; round++) {
			const uint64_t fast = 10000000, held = fast * (uint64_t)ms / 10000;
			line_meter_begin(&l.meter, l.now_us, l.at);
			carry(&l, ms, fast, fast);
			carry(&l, 10000, held, held);
			line_meter_end(&l.meter, l.now_us, l.at);
			assert_in_range(line_meter_up(&l.meter, 0), fast / 20 * 19, fast / 20 * 21);
			assert_in_range(line_meter_down(&l.meter, 0), fast / 20 * 19, fast / 20 * 21);
		}
	}
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
		cmocka_unit_test(test_a_short_all_reduce_counts),
		cmocka_unit_test(test_waiting_is_no_rate),
		cmocka_unit_test(test_a_shape_with_a_slow_member),
		cmocka_unit_test(test_a_peer_that_holds_back_makes_no_line_slow),
		cmocka_unit_test(test_the_second_best_of_rounds),
		cmocka_unit_test(test_rounds_that_a_slow_member_held_up_hide_nothing),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_begin_twice_is_one_measurement),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
