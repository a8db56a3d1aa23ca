/* The rule of what may be on its way, over a simulated line: time is a number, a line is when it is
 * free again. */
#include "net/mesh/pace_window.h"
#include "tests/common/check.h"

#include <string.h>

enum { LINKS = 8, FLIGHTS = 1 << 12, PACKET_BYTES = 1448, MOST_PACKETS = 32, PUMP_US = 5000, S = 1000 * 1000 };

struct flight {
	int64_t at_us; /* acknowledged */
	size_t bytes;
};

struct sim_link {
	struct pace_flow flow;
	struct flight flights[FLIGHTS]; /* a ring */
	unsigned head, tail;
	size_t waiting;
	uint64_t delivered;
	double down_bytes_per_s; /* of the receiver; 0: fast */
	double down_free_us;
};

struct sim {
	int n, turn;
	double up_bytes_per_s, up_free_us;
	int64_t now_us, rtt_us;
	struct pace_flow all;
	struct sim_link links[LINKS];
	uint64_t delivered;
	double worst_up_us, worst_down_us; /* queues that a packet met */
};

static struct sim *sim_new(int n, double mbit, int64_t rtt_us) {
	static struct sim s;
	memset(&s, 0, sizeof s);
	s.n = n;
	s.up_bytes_per_s = mbit * 1e6 / 8;
	s.rtt_us = rtt_us;
	s.now_us = 1;
	return &s;
}

static double larger(double a, double b) {
	return a > b ? a : b;
}

static void pass(double *free_us, double now_us, size_t bytes, double bytes_per_s, double *worst_us) {
	if (bytes_per_s <= 0)
		return;
	*worst_us = larger(*worst_us, *free_us - now_us);
	*free_us = larger(*free_us, now_us) + (double)bytes * 1e6 / bytes_per_s;
}

static void send_packet(struct sim *s, struct sim_link *l, size_t bytes) {
	assert_true(l->tail - l->head < FLIGHTS);
	pass(&s->up_free_us, (double)s->now_us, bytes, s->up_bytes_per_s, &s->worst_up_us);
	double at_us = larger(s->up_free_us, (double)s->now_us);
	pass(&l->down_free_us, at_us, bytes, l->down_bytes_per_s, &s->worst_down_us);
	at_us = larger(l->down_free_us, at_us) + (double)s->rtt_us;
	l->flights[l->tail++ % FLIGHTS] = (struct flight){(int64_t)at_us, bytes};
	l->waiting += bytes;
}

/* In packets, or a few parts where that would be many. */
static void send_slice(struct sim *s, struct sim_link *l, size_t bytes) {
	size_t packet = bytes / MOST_PACKETS > PACKET_BYTES ? bytes / MOST_PACKETS : PACKET_BYTES;
	for (size_t n; bytes > 0; bytes -= n) {
		n = bytes < packet ? bytes : packet;
		send_packet(s, l, n);
	}
}

static void acknowledge(struct sim *s, struct sim_link *l) {
	for (; l->head != l->tail && l->flights[l->head % FLIGHTS].at_us <= s->now_us; l->head++) {
		size_t bytes = l->flights[l->head % FLIGHTS].bytes;
		l->waiting -= bytes;
		l->delivered += bytes;
		s->delivered += bytes;
	}
}

static int n_busy(const struct sim *s) {
	int n = 0;
	for (int i = 0; i < s->n; i++)
		n += s->links[i].waiting > 0;
	return n;
}

/* A slice for each link, from where the last turn ended; false: nobody could send. */
static bool send_turn(struct sim *s, size_t window) {
	bool sent = false;
	for (int i = 0; i < s->n; i++) {
		struct sim_link *l = &s->links[s->turn];
		size_t slice = pace_slice_bytes(&s->all, &l->flow);
		size_t all = 0;
		for (int k = 0; k < s->n; k++)
			all += s->links[k].waiting;
		if (!pace_fits(all, window)) {
			s->all.held = l->flow.held = true;
			return false;
		}
		s->turn = (s->turn + 1) % s->n;
		if (!pace_fits(l->waiting, pace_link_window(&l->flow, &s->all, n_busy(s), s->rtt_us))) {
			l->flow.held = true;
			s->all.held = s->all.held || !pace_is_found(&s->all);
			continue;
		}
		send_slice(s, l, slice);
		sent = true;
	}
	return sent;
}

/* Everybody has bulk all the time. */
static void run(struct sim *s, int64_t us) {
	for (int64_t end_us = s->now_us + us; s->now_us < end_us; s->now_us += PUMP_US) {
		for (int i = 0; i < s->n; i++) {
			acknowledge(s, &s->links[i]);
			pace_flow_measure(&s->links[i].flow, s->now_us, s->links[i].delivered, s->rtt_us);
		}
		pace_flow_measure(&s->all, s->now_us, s->delivered, s->rtt_us);
		size_t window = pace_flow_window(&s->all, s->rtt_us);
		while (send_turn(s, window))
			;
	}
}

/* After 6 s to find the rate, the line is full and the queue in front of it short, whatever the
 * line. */
static void a_line_is_filled_and_its_queue_stays_short(void **state) {
	(void)state;
	static const double mbits[] = {0.5, 1, 10, 100, 1000};
	static const int64_t rtts_us[] = {1000, 40000, 200000};
	for (size_t m = 0; m < sizeof mbits / sizeof mbits[0]; m++)
		for (size_t r = 0; r < sizeof rtts_us / sizeof rtts_us[0]; r++)
			for (int n = 1; n < LINKS; n += 2) {
				struct sim *s = sim_new(n, mbits[m], rtts_us[r]);
				run(s, 6 * S);
				uint64_t before = s->delivered;
				s->worst_up_us = 0;
				run(s, 10 * S);
				double carried = (double)(s->delivered - before) / 10 / s->up_bytes_per_s;
				assert_true(carried > 0.95 && carried < 1.01);
				/* The window, less what is not queue; the slice that was begun last; what the rate
				 * is too high by. */
				double most_us = (PACE_EXTRA_BYTES + PACE_SLICE_LEAST_BYTES) * 1e6 / s->up_bytes_per_s + PACE_QUEUE_US +
								 PACE_SLICE_US + 0.2 * (PACE_QUEUE_US + (double)s->rtt_us);
				assert_true(s->worst_up_us < most_us);
			}
}

/* One receiver of three has a thirtieth of our line: the others share the rest, and its own queue
 * stays short. */
static void a_slow_receiver_holds_only_itself_back(void **state) {
	(void)state;
	struct sim *s = sim_new(3, 30, 40000);
	s->links[1].down_bytes_per_s = 1e6 / 8;
	run(s, 5 * S);
	uint64_t before = s->delivered, slow = s->links[1].delivered;
	s->worst_down_us = 0;
	run(s, 10 * S);
	assert_true((double)(s->delivered - before) / 10 > 0.95 * s->up_bytes_per_s);
	assert_true((double)(s->links[1].delivered - slow) / 10 > 0.95 * s->links[1].down_bytes_per_s);
	double bytes = PACE_EXTRA_BYTES + (double)pace_slice_bytes(&s->all, &s->links[1].flow);
	/* A link below its fair share may have twice the window of its rate. */
	assert_true(s->worst_down_us <
				1.2 * (2 * PACE_QUEUE_US + (double)s->rtt_us) + bytes * 1e6 / s->links[1].down_bytes_per_s);
}

/* Whatever the shares were: windows made of the rates alone would keep them. */
static void links_come_to_equal_shares(void **state) {
	(void)state;
	static const int64_t rtts_us[] = {1000, 40000, 200000};
	for (size_t r = 0; r < sizeof rtts_us / sizeof rtts_us[0]; r++) {
		struct sim *s = sim_new(3, 30, rtts_us[r]);
		static const double shares[] = {0.75, 0.2, 0.05};
		for (int i = 0; i < s->n; i++)
			s->links[i].flow = (struct pace_flow){.bytes_per_s = shares[i] * s->up_bytes_per_s, .flat = PACE_FLAT};
		s->all = (struct pace_flow){.bytes_per_s = s->up_bytes_per_s, .flat = PACE_FLAT};
		run(s, 4 * S);
		uint64_t before[3];
		for (int i = 0; i < s->n; i++)
			before[i] = s->links[i].delivered;
		run(s, 5 * S);
		for (int i = 0; i < s->n; i++) {
			double share = (double)(s->links[i].delivered - before[i]) / 5 / s->up_bytes_per_s;
			assert_true(share > 0.28 && share < 0.38);
		}
	}
}

/* What an owner did not have to send says nothing about the line; what a full window did not bring
 * does. */
static void only_a_full_window_lowers_the_rate(void **state) {
	(void)state;
	struct pace_flow f = {0};
	uint64_t delivered = 0;
	int64_t now_us = 1;
	for (int i = 0; i < 100; i++, delivered += 12500, now_us += 100000) {
		f.held = true;
		pace_flow_measure(&f, now_us, delivered, 1000);
	}
	double full = f.bytes_per_s;
	assert_true(full > 124999 && full < 125001);
	for (int i = 0; i < 100; i++, delivered += 100, now_us += 100000)
		pace_flow_measure(&f, now_us, delivered, 1000);
	assert_true(f.bytes_per_s == full);
	for (int i = 0; i < 200; i++, delivered += 100, now_us += 100000) {
		f.held = true;
		pace_flow_measure(&f, now_us, delivered, 1000);
	}
	assert_true(f.bytes_per_s < full / 10 && f.bytes_per_s >= 1000);
}

static void sizes_have_bounds(void **state) {
	(void)state;
	struct pace_flow f = {.flat = PACE_FLAT}, slow = {.bytes_per_s = 1e5};
	assert_int_equal(pace_flow_window(&f, 0), PACE_EXTRA_BYTES);
	assert_int_equal(pace_slice_bytes(&f, &f), PACE_SLICE_LEAST_BYTES);
	f.bytes_per_s = 1e6;
	assert_int_equal(pace_flow_window(&f, 40000), 100000 + PACE_EXTRA_BYTES);
	assert_int_equal(pace_slice_bytes(&f, &f), 30000);
	assert_int_equal(pace_slice_bytes(&f, &slow), 12000);
	slow.flat = PACE_FLAT; /* its fair share of 8 links; of 2 */
	assert_int_equal(pace_link_window(&slow, &f, 8, 40000), 12500 + PACE_EXTRA_BYTES);
	assert_int_equal(pace_link_window(&slow, &f, 2, 40000), 20000 + PACE_EXTRA_BYTES);
	assert_int_equal(pace_link_window(&f, &f, 0, 40000), 100000 + PACE_EXTRA_BYTES);
	f.flat = 0; /* a long line whose rate is not found yet */
	assert_int_equal(pace_flow_window(&f, 40000), 120000 + PACE_EXTRA_BYTES);
	f.bytes_per_s = 1e300;
	assert_true(pace_flow_window(&f, INT64_MAX / 2) >= (size_t)1 << 39);
	assert_true(pace_fits(0, PACE_EXTRA_BYTES)); /* nothing is on its way: something may go */
	assert_false(pace_fits(PACE_EXTRA_BYTES, PACE_EXTRA_BYTES));
}

static void a_slow_line_stays_one_for_a_while(void **state) {
	(void)state;
	struct pace_flow f = {.bytes_per_s = PACE_SLOW_BYTES_PER_S - 1};
	assert_false(pace_is_slow(&f, false)); /* nobody knows yet */
	f.flat = PACE_FLAT;
	assert_true(pace_is_slow(&f, false));
	f.bytes_per_s = PACE_FAST_BYTES_PER_S - 1;
	assert_false(pace_is_slow(&f, false));
	assert_true(pace_is_slow(&f, true));
	f.bytes_per_s = PACE_FAST_BYTES_PER_S;
	assert_false(pace_is_slow(&f, true));
}

/* After a pause bytes leave at a quarter above the known rate; a tenth of a second
 * later its window is as large as before. */
static void a_known_window_opens_step_by_step(void **state) {
	(void)state;
	const struct pace_flow unknown = {.bytes_per_s = 1e6}, known = {.bytes_per_s = 1e6, .flat = PACE_FLAT};
	assert_true(pace_opening_window(&unknown, 0) == SIZE_MAX);
	assert_int_equal(pace_opening_window(&known, 0), 10000 + PACE_EXTRA_BYTES);
	assert_int_equal(pace_opening_window(&known, 40 * 1000), 60000 + PACE_EXTRA_BYTES);
	assert_true(pace_opening_window(&known, 100 * 1000) > pace_flow_window(&known, 40 * 1000));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_filled_and_its_queue_stays_short),
		cmocka_unit_test(a_slow_receiver_holds_only_itself_back),
		cmocka_unit_test(links_come_to_equal_shares),
		cmocka_unit_test(only_a_full_window_lowers_the_rate),
		cmocka_unit_test(sizes_have_bounds),
		cmocka_unit_test(a_slow_line_stays_one_for_a_while),
		cmocka_unit_test(a_known_window_opens_step_by_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
