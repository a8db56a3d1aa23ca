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

/* What TCP_INFO showed of five links of one worker while eight workers on two processors shook
 * hands and sent their first bulk: lines of 25 Mbit/s with a round trip of 0 to 1 ms, no packet
 * lost (2026-11-24). */
static const struct sight {
	uint8_t link;
	int32_t us, sent, resent, doubled; /* doubled: in packets */
	int32_t rtt_us;
} late_handshakes[] = {
	{1, 389, 1003, 0, 0, 6048},          {2, 389, 984, 0, 0, 1067},
	{3, 389, 984, 0, 0, 1191},           {6, 389, 984, 0, 0, 704},
	{7, 389, 984, 0, 0, 1091},           {3, 40219, 10736, 1286, 0, 3953},
	{7, 45513, 16434, 1239, 0, 3848},    {1, 53471, 15214, 0, 0, 7187},
	{2, 53471, 20616, 1239, 0, 2552},    {6, 53471, 15195, 0, 0, 6902},
	{2, 73286, 20616, 1239, 1, 10513},   {3, 73286, 20663, 1286, 1, 3953},
	{6, 73286, 26361, 1239, 0, 6902},    {7, 73286, 26361, 1239, 1, 9871},
	{1, 77740, 26380, 1239, 0, 8864},    {6, 92611, 34649, 1239, 1, 10960},
	{1, 113883, 34668, 1239, 1, 20571},  {6, 121767, 35697, 2287, 1, 10960},
	{2, 124098, 43784, 1239, 1, 10513},  {3, 124098, 59312, 1286, 1, 20445},
	{7, 124098, 60713, 1239, 1, 19700},  {6, 152754, 66105, 2287, 2, 19866},
	{6, 155605, 66105, 2287, 3, 19866},  {6, 161870, 66105, 2287, 5, 19866},
	{1, 164893, 66756, 1239, 1, 25675},  {2, 177937, 66737, 1239, 1, 29732},
	{3, 177937, 66784, 1286, 1, 33265},  {7, 177937, 66737, 1239, 1, 43745},
	{6, 213316, 67785, 2287, 5, 53136},  {1, 215493, 98612, 1239, 1, 48339},
	{2, 228611, 98825, 1239, 1, 47628},  {3, 228611, 98872, 1286, 1, 45811},
	{7, 228611, 98825, 1239, 1, 53342},  {6, 263752, 99873, 2287, 5, 56941},
	{1, 266304, 98844, 1239, 1, 48339},  {2, 279502, 130913, 1239, 1, 49519},
	{3, 279502, 130960, 1286, 1, 50862}, {7, 279502, 98825, 1239, 1, 53342},
};

/* Replays them as look() of net/mesh/pace.c sees them. Returns how many links end as lossy. */
static int replay(const struct sight *seen, size_t n, bool told) {
	enum { LINKS = 8, LEAST_RTT_US = 690 };
	struct congestion rules[LINKS] = {0};
	struct congestion_line line = {0};
	int lossy = 0;
	for (size_t i = 0; i < n; i++) {
		const struct sight *s = &seen[i];
		const struct pipe_info info = {.least_rtt_us = LEAST_RTT_US,
									   .rtt_us = s->rtt_us,
									   .sent = (uint64_t)s->sent,
									   .resent = (uint64_t)s->resent,
									   .doubled = told ? (uint64_t)s->doubled * PACKET_BYTES : 0};
		(void)congestion_measure(&rules[s->link], s->us, &info, &line);
		line = (struct congestion_line){0};
		for (int k = 0; k < LINKS; k++)
			congestion_join(&line, &rules[k]);
	}
	for (int k = 0; k < LINKS; k++)
		lossy += rules[k].lossy;
	return lossy;
}

/* A busy computer acknowledges late, so the other side sends again what has come. */
static void what_came_twice_was_not_lost(void **state) {
	(void)state;
	const size_t n = sizeof late_handshakes / sizeof late_handshakes[0];
	assert_true(replay(late_handshakes, n, false) > 0);
	assert_int_equal(replay(late_handshakes, n, true), 0);
}

/* Half of what is sent again came twice; the other half makes CUBIC suffer all the same. */
static void what_came_once_was_lost(void **state) {
	(void)state;
	struct line l = line_of(RTT_US);
	for (int i = 0; i < 30 && !l.rule.lossy; i++) {
		(void)run(&l, 0.1, 0.01, 0);
		l.info.doubled = l.info.resent / 2;
	}
	assert_true(l.rule.lossy);
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
		cmocka_unit_test(what_came_twice_was_not_lost),
		cmocka_unit_test(what_came_once_was_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
