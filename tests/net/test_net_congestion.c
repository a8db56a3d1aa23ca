/* Which congestion control suits a link: the rule over made-up counts of a connection. */
#include "net/mesh/congestion.h"
#include "tests/common/check.h"

enum { MS = 1000, PACKET_BYTES = 1448, RTT_US = 40 * MS, BYTES_PER_S = 4 * 1000 * 1000 };

struct line {
	struct congestion rule;
	struct pipe_info info;
	int64_t now_us;
	double unsent;                 /* lost packets, as a fraction of one */
	struct congestion_line others; /* of this worker */
};

static struct line line_of(int64_t least_rtt_us) {
	return (struct line){.now_us = 1, .info = {.least_rtt_us = least_rtt_us, .rtt_us = least_rtt_us}};
}

/* Sends for some seconds at BYTES_PER_S; of each packet that part is lost. Looks every 5 ms. */
static bool run(struct line *l, double seconds, double loss, int64_t queue_us) {
	enum { LOOK_US = 5 * MS };
	bool lossy = l->rule.lossy;
	for (int64_t end_us = l->now_us + (int64_t)(seconds * 1e6); l->now_us < end_us; l->now_us += LOOK_US) {
		const int bytes = BYTES_PER_S / 1000 * (LOOK_US / MS);
		l->unsent += loss * bytes / PACKET_BYTES;
		const uint64_t lost = (uint64_t)l->unsent;
		l->unsent -= (double)lost;
		l->info.sent += (uint64_t)bytes + lost * PACKET_BYTES;
		l->info.resent += lost * PACKET_BYTES;
		l->info.rtt_us = l->info.least_rtt_us + queue_us;
		struct congestion_line line = l->others;
		congestion_join(&line, &l->rule);
		lossy = congestion_measure(&l->rule, l->now_us, &l->info, &line);
	}
	return lossy;
}

static void a_clean_link_keeps_cubic(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	assert_false(run(&l, 60, 0, 0));
}

/* A queue that overflows is what CUBIC is made for, however much it costs. */
static void losses_of_a_queue_keep_cubic(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	assert_false(run(&l, 60, 0.02, 50 * MS));
}

/* The queue that overflowed is gone when its losses are found. */
static void a_loss_found_after_the_queue_has_drained_counts_for_the_queue(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	for (int i = 0; i < 100; i++) {
		(void)run(&l, 0.25, 0, 40 * MS);
		assert_false(run(&l, 0.1, 0.05, 0));
		assert_false(run(&l, 0.9, 0, 0));
	}
}

/* BBR on another link hides the queue's absence; a link without losses keeps CUBIC even then. */
static void beside_a_lossy_link_all_losses_count(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	l.others.any_lossy = true;
	assert_false(run(&l, 60, 0, 50 * MS));
	assert_true(run(&l, 30, 0.005, 50 * MS));
}

/* Four losses of a line are enough, whichever of its links they hit; those without any keep
 * CUBIC. */
static void the_links_of_a_line_are_counted_together(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	l.others.quiet = (struct congestion_bytes){.sent = 4e6, .resent = 4 * PACKET_BYTES};
	assert_false(run(&l, 1, 0, 0));
	l.info.resent += PACKET_BYTES;
	assert_true(run(&l, 0.3, 0, 0));
}

static void random_loss_is_seen_within_seconds(void **state) {
	(void)state;
	static const double losses[] = {0.001, 0.005, 0.02};
	static const int64_t rtts_us[] = {100, RTT_US, 200 * MS};
	for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
		for (size_t k = 0; k < sizeof rtts_us / sizeof rtts_us[0]; k++) {
			struct line l = line_of(rtts_us[k]);
			assert_true(run(&l, 3, losses[i], 2 * MS));
		}
}

/* A hundredth of what makes CUBIC suffer, over a minute. */
static void a_few_losses_keep_cubic(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	assert_false(run(&l, 60, 0.01 / CONGESTION_LOSSY_SHARE, 0));
}

/* What was lost long ago counts for less: a link that has become clean is not judged by it. */
static void old_losses_fade(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	assert_false(run(&l, 20, 0.4 / CONGESTION_LOSSY_SHARE, 0));
	assert_false(run(&l, 60, 0, 0));
	assert_true(l.rule.quiet.resent < CONGESTION_LEAST_LOST_BYTES);
}

static double seconds_until(struct line *l, bool lossy, double loss) {
	int64_t from_us = l->now_us;
	for (int i = 0; i < 100000 && l->rule.lossy != lossy; i++)
		(void)run(l, 0.2, loss, 0);
	assert_true(l->rule.lossy == lossy);
	return (double)(l->now_us - from_us) * 1e-6;
}

/* A link that is lossy for good is tried again ever more seldom; one that has become clean stays
 * with CUBIC. */
static void cubic_is_tried_again_ever_later(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	(void)seconds_until(&l, true, 0.005);
	double first_s = seconds_until(&l, false, 0.005);
	assert_true(first_s * BYTES_PER_S > 0.9 * (double)CONGESTION_TRIAL_BYTES);
	assert_true(seconds_until(&l, true, 0.005) < 3);
	assert_true(seconds_until(&l, false, 0.005) > 1.8 * first_s);
	assert_false(run(&l, 60, 0, 0));
}

/* A new connection begins its counts at 0. */
static void counts_that_fall_begin_a_new_period(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	(void)run(&l, 1, 0, 0);
	l.info.sent = l.info.resent = 0;
	assert_false(run(&l, 10, 0, 0));
	assert_true(l.rule.quiet.sent <= 2 * CONGESTION_MEMORY_BYTES);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clean_link_keeps_cubic),
		cmocka_unit_test(losses_of_a_queue_keep_cubic),
		cmocka_unit_test(a_loss_found_after_the_queue_has_drained_counts_for_the_queue),
		cmocka_unit_test(beside_a_lossy_link_all_losses_count),
		cmocka_unit_test(the_links_of_a_line_are_counted_together),
		cmocka_unit_test(random_loss_is_seen_within_seconds),
		cmocka_unit_test(a_few_losses_keep_cubic),
		cmocka_unit_test(old_losses_fade),
		cmocka_unit_test(cubic_is_tried_again_ever_later),
		cmocka_unit_test(counts_that_fall_begin_a_new_period),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
