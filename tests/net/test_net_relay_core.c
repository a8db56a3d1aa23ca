/* test_net_relay_core.c: whom a relay admits, which calls it makes, which tokens it takes, and how
 * much it forwards. */
#include "tests/net/relay_rig.h"

#include "base/clock.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t no_ticket[NET_SIG_BYTES];

static const struct relay_totals *totals(const struct relay_rig *r) {
	return relay_core_totals(r->core);
}

static void assert_refused(const struct relay_rig *r, enum relay_refusal why) {
	assert_int_equal(r->n_sent, 1);
	assert_int_equal(r->sent[0].frame.type, RELAY_REFUSED);
	assert_int_equal(r->sent[0].frame.refused.reason, why);
}

/* ---- stations ---- */

static void a_member_with_its_ticket_has_a_station(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	int station = rig_hello(&r, 0, &r.run, 0);
	assert_int_equal(r.n_sent, 1);
	assert_int_equal(r.sent[0].connection, station);
	assert_int_equal(r.sent[0].frame.type, RELAY_SEEN);
	assert_string_equal(r.sent[0].frame.seen.at.host, "192.0.2.1");
	assert_int_equal(r.sent[0].frame.seen.at.port, 4000);
	assert_int_equal(totals(&r)->stations_now, 1);
	rig_release(&r);
}

static void a_ticket_of_another_run_or_member_is_refused(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	int stranger = rig_hello(&r, 0, &r.members[1], 0);
	assert_true(rig_was_closed(&r, stranger));
	rig_clear(&r);
	r.station[0] = rig_hello(&r, 0, &r.run, 0);
	assert_int_equal(r.n_closed, 0);
	r.run_id[0] ^= 1; /* the same key signs for another run */
	(void)rig_hello(&r, 1, &r.run, 1);
	assert_int_equal(r.n_closed, 1);
	assert_int_equal(totals(&r)->stations_now, 1);
	rig_release(&r);
}

static void a_new_station_of_a_member_replaces_its_former_one(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	int first = rig_hello(&r, 0, &r.run, 0);
	int second = rig_hello(&r, 0, &r.run, 0);
	assert_int_equal(r.n_closed, 1);
	assert_true(rig_was_closed(&r, first) && first != second);
	assert_int_equal(totals(&r)->stations_now, 1);
	rig_release(&r);
}

static void a_station_answers_pings_until_it_is_silent_or_leaves(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	for (int i = 0; i < 5; i++) {
		rig_pass_ms(&r, NET_RELAY_IDLE_MS / 2);
		relay_take_frame(r.core, r.now_us, r.station[0], &(struct relay_frame){.type = RELAY_PING, .number = 7});
		rig_drain(&r);
	}
	assert_int_equal(r.sent[4].frame.type, RELAY_PONG);
	assert_true(r.sent[4].frame.number == 7);
	assert_int_equal(r.n_closed, 1);
	assert_true(rig_was_closed(&r, r.station[1]));
	relay_take_frame(r.core, r.now_us, r.station[0], &(struct relay_frame){.type = RELAY_LEAVE});
	rig_drain(&r);
	assert_int_equal(r.n_closed, 2);
	assert_int_equal(totals(&r)->stations_now, 0);
	rig_release(&r);
}

static void a_station_that_floods_is_closed(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	int n = 0;
	for (; r.n_closed == 0 && n < 100000; n++) {
		relay_take_frame(r.core, r.now_us, r.station[0], &(struct relay_frame){.type = RELAY_PING});
		rig_drain(&r);
	}
	assert_int_equal(n, NET_RELAY_FRAMES_BURST + 1);
	rig_release(&r);
}

/* ---- calls ---- */

static void a_call_rings_both_and_joins_them(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	assert_int_equal(r.n_sent, 2);
	const struct relay_ring *caller = &r.sent[0].frame.ring, *called = &r.sent[1].frame.ring;
	assert_int_equal(r.sent[0].connection, r.station[0]);
	assert_int_equal(r.sent[1].connection, r.station[1]);
	assert_int_equal(caller->peer, 1);
	assert_int_equal(called->peer, 0);
	assert_memory_not_equal(caller->token, called->token, NET_TOKEN_BYTES);
	(void)rig_data(&r, called->token);
	assert_int_equal(r.n_splices, 0);
	(void)rig_data(&r, caller->token);
	assert_int_equal(r.n_splices, 1);
	assert_int_equal(r.n_closed, 0);
	assert_int_equal(totals(&r)->links_now, 1);
	rig_release(&r);
}

static void a_ticket_for_others_is_refused(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 3);
	struct pair_end a = {.member = 0}, c = {.member = 2};
	uint8_t ticket[NET_SIG_BYTES];
	memcpy(a.key, r.members[0].key, NET_KEY_BYTES);
	memcpy(c.key, r.members[2].key, NET_KEY_BYTES);
	pair_ticket_sign(&r.run, r.run_id, 1, 5, &a, &c, ticket);
	rig_call_with(&r, 0, 1, 1, 5, ticket); /* for another pair */
	assert_refused(&r, RELAY_REFUSE_TICKET);
	rig_clear(&r);
	rig_call_with(&r, 0, 2, 1, 6, ticket); /* for another round */
	assert_refused(&r, RELAY_REFUSE_TICKET);
	rig_clear(&r);
	rig_call_with(&r, 1, 2, 1, 5, ticket); /* shown by a third */
	assert_refused(&r, RELAY_REFUSE_TICKET);
	rig_clear(&r);
	rig_call_with(&r, 0, 0, 1, 5, ticket); /* for itself */
	assert_refused(&r, RELAY_REFUSE_TICKET);
	rig_clear(&r);
	pair_ticket_sign(&r.members[3], r.run_id, 1, 5, &a, &c, ticket);
	rig_call_with(&r, 0, 2, 1, 5, ticket); /* by another run's key */
	assert_refused(&r, RELAY_REFUSE_TICKET);
	rig_clear(&r);
	rig_call_with(&r, 0, 2, 1, 900, no_ticket); /* and it does not make others' tickets stale */
	assert_int_equal(rig_call(&r, 0, 2, 5), RELAY_RING);
	assert_int_equal(totals(&r)->refused[RELAY_REFUSE_TICKET], 6);
	rig_release(&r);
}

static void a_ticket_of_an_earlier_round_is_stale(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 3);
	assert_int_equal(rig_call(&r, 0, 1, 10), RELAY_RING);
	assert_int_equal(rig_call(&r, 0, 2, 10 - NET_RELAY_ROUNDS_BEHIND), RELAY_RING);
	assert_int_equal(rig_call(&r, 1, 2, 9 - NET_RELAY_ROUNDS_BEHIND), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_STALE);
	struct pair_end a = {.member = 0}, b = {.member = 1};
	uint8_t ticket[NET_SIG_BYTES];
	memcpy(a.key, r.members[0].key, NET_KEY_BYTES);
	memcpy(b.key, r.members[1].key, NET_KEY_BYTES);
	pair_ticket_sign(&r.run, r.run_id, 2, 3, &a, &b, ticket);
	rig_clear(&r);
	rig_call_with(&r, 0, 1, 2, 3, ticket); /* a later term, and an earlier round */
	assert_int_equal(r.sent[0].frame.type, RELAY_RING);
	assert_int_equal(rig_call(&r, 0, 2, 100), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_STALE);
	rig_release(&r);
}

/* More members than the relay remembers come and go in a day: a place of one that is away goes to
 * another. */
static void members_of_any_number_come_and_go(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	for (uint32_t k = 0; k < 2 * NET_RELAY_MEMBERS; k++) {
		rig_clear(&r);
		int station = rig_hello(&r, 2, &r.run, 4000000000u + k);
		assert_int_equal(r.n_closed, 0);
		relay_closed(r.core, station);
		rig_drain(&r);
	}
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	rig_release(&r);
}

static void nobody_is_called_who_is_absent_or_banned(void **state) {
	(void)state;
	struct relay_rig r;
	int ends[2];
	rig_init(&r, 0, 0);
	rig_stations(&r, 3);
	assert_int_equal(rig_call(&r, 0, 3, 5), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_ABSENT);
	rig_join(&r, 0, 1, 5, ends);
	relay_ban(r.core, &(struct banned){1, {1}});
	rig_drain(&r);
	assert_int_equal(r.n_closed, 3);
	assert_true(rig_was_closed(&r, r.station[1]) && rig_was_closed(&r, ends[0]) && rig_was_closed(&r, ends[1]));
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_BANNED);
	rig_clear(&r);
	(void)rig_hello(&r, 1, &r.run, 1);
	assert_int_equal(r.n_closed, 1);
	relay_ban(r.core, &(struct banned){0});
	rig_clear(&r);
	(void)rig_hello(&r, 1, &r.run, 1);
	assert_int_equal(r.n_closed, 0);
	rig_release(&r);
}

static void calls_have_a_pace(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	for (int i = 0; i < NET_RELAY_CALLS_BURST; i++)
		assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_RATE);
	assert_int_equal(r.sent[0].frame.refused.wait_ms, 1000);
	rig_pass_ms(&r, 1000);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_REFUSED);
	rig_release(&r);
}

static void both_calling_at_once_make_one_call(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	uint8_t caller[NET_TOKEN_BYTES], called[NET_TOKEN_BYTES];
	memcpy(caller, r.sent[0].frame.ring.token, sizeof caller);
	memcpy(called, r.sent[1].frame.ring.token, sizeof called);
	assert_int_equal(rig_call(&r, 1, 0, 5), 0);
	(void)rig_data(&r, caller);
	(void)rig_data(&r, called);
	assert_int_equal(r.n_splices, 1);
	rig_release(&r);
}

static void a_repeated_call_voids_the_former_tokens(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	uint8_t first[NET_TOKEN_BYTES];
	memcpy(first, r.sent[0].frame.ring.token, sizeof first);
	int waits = rig_data(&r, first);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	assert_true(rig_was_closed(&r, waits));
	rig_clear(&r);
	(void)rig_data(&r, first);
	assert_int_equal(r.n_closed, 1);
	rig_release(&r);
}

/* ---- tokens ---- */

static void a_token_is_taken_once(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	uint8_t token[2][NET_TOKEN_BYTES];
	for (int e = 0; e < 2; e++)
		memcpy(token[e], r.sent[e].frame.ring.token, NET_TOKEN_BYTES);
	int first = rig_data(&r, token[0]);
	(void)rig_data(&r, token[0]); /* the same end again, while the first one waits */
	assert_int_equal(r.n_closed, 1);
	assert_false(rig_was_closed(&r, first));
	(void)rig_data(&r, token[1]);
	assert_int_equal(r.n_splices, 1);
	(void)rig_data(&r, token[0]); /* a third connection */
	(void)rig_data(&r, token[1]);
	assert_int_equal(r.n_closed, 3);
	assert_int_equal(totals(&r)->links_now, 1);
	(void)rig_data(&r, no_ticket);
	assert_int_equal(r.n_closed, 4);
	rig_release(&r);
}

static void a_token_gets_old(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	uint8_t called[NET_TOKEN_BYTES];
	memcpy(called, r.sent[1].frame.ring.token, sizeof called);
	int waits = rig_data(&r, r.sent[0].frame.ring.token);
	rig_pass_ms(&r, NET_RELAY_TOKEN_MS);
	assert_true(rig_was_closed(&r, waits));
	rig_clear(&r);
	(void)rig_data(&r, called);
	assert_int_equal(r.n_closed, 1);
	rig_release(&r);
}

static void a_later_call_replaces_the_link(void **state) {
	(void)state;
	struct relay_rig r;
	int first[2], second[2];
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	rig_join(&r, 0, 1, 5, first);
	assert_int_equal(rig_call(&r, 1, 0, 5), RELAY_RING);
	assert_int_equal(r.n_closed, 0); /* not before both ends are there */
	second[0] = rig_data(&r, r.sent[0].frame.ring.token);
	assert_int_equal(r.n_closed, 0);
	second[1] = rig_data(&r, r.sent[1].frame.ring.token);
	assert_int_equal(r.n_closed, 2);
	assert_true(rig_was_closed(&r, first[0]) && rig_was_closed(&r, first[1]));
	assert_int_equal(totals(&r)->links_now, 1);
	relay_closed(r.core, second[1]); /* one end breaks off */
	rig_drain(&r);
	assert_true(rig_was_closed(&r, second[0]));
	assert_int_equal(totals(&r)->links_now, 0);
	rig_release(&r);
}

static void an_idle_link_is_closed(void **state) {
	(void)state;
	struct relay_rig r;
	int ends[2];
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	rig_join(&r, 0, 1, 5, ends);
	rig_pass_ms(&r, NET_RELAY_IDLE_MS - 1000);
	relay_forwarded(r.core, r.now_us, ends[0], 1);
	rig_pass_ms(&r, NET_RELAY_IDLE_MS - 1000);
	assert_false(rig_was_closed(&r, ends[0]));
	rig_pass_ms(&r, 1000);
	assert_true(rig_was_closed(&r, ends[0]) && rig_was_closed(&r, ends[1]));
	rig_release(&r);
}

/* ---- budget and rate ---- */

/* What passes is of both members' budgets: one that has bytes sent to it, or fetches them, pays as
 * much as its peer. */
static void a_spent_budget_ends_its_members_links(void **state) {
	(void)state;
	struct relay_rig r;
	int ends[2], other[2], others[2];
	rig_init(&r, 1000, 0);
	rig_stations(&r, 4);
	rig_join(&r, 0, 1, 5, ends);
	rig_join(&r, 2, 0, 5, other);
	rig_join(&r, 2, 3, 5, others);
	relay_forwarded(r.core, r.now_us, ends[0], 500);
	relay_forwarded(r.core, r.now_us, ends[1], 400); /* 900 of members 0 and 1 */
	rig_drain(&r);
	assert_int_equal(r.n_closed, 0);
	assert_int_equal(relay_allowance(r.core, r.now_us, other[1]), 100); /* by the budget of its end */
	assert_int_equal(relay_allowance(r.core, r.now_us, other[0]), 100); /* and of the other */
	assert_int_equal(relay_allowance(r.core, r.now_us, others[0]), 1000);
	relay_forwarded(r.core, r.now_us, other[0], 100); /* member 2 floods member 0 */
	rig_drain(&r);
	assert_int_equal(r.n_closed, 4);
	assert_true(rig_was_closed(&r, ends[1]) && rig_was_closed(&r, other[0]));
	assert_int_equal(totals(&r)->links_now, 1);
	assert_int_equal(relay_allowance(r.core, r.now_us, others[0]), 900); /* and has paid for it */
	assert_int_equal(rig_call(&r, 3, 0, 5), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_BUDGET);
	assert_int_equal(r.sent[0].frame.refused.whose, RELAY_CALLED);
	assert_true(r.sent[0].frame.refused.wait_ms > 0);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_REFUSED);
	assert_int_equal(r.sent[0].frame.refused.whose, RELAY_CALLER);
	r.now_us += INT64_C(86400) * RV_US_PER_S; /* the next day */
	assert_int_equal(rig_call(&r, 3, 0, 5), RELAY_RING);
	assert_true(totals(&r)->bytes == 1000);
	rig_release(&r);
}

/* Both budgets end with one slice. */
static void two_budgets_may_end_at_once(void **state) {
	(void)state;
	struct relay_rig r;
	int ends[2];
	rig_init(&r, 1000, 0);
	rig_stations(&r, 2);
	rig_join(&r, 0, 1, 5, ends);
	relay_forwarded(r.core, r.now_us, ends[0], 1000);
	rig_drain(&r);
	assert_int_equal(r.n_closed, 2);
	assert_int_equal(totals(&r)->links_now, 0);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_REFUSED);
	assert_int_equal(r.sent[0].frame.refused.whose, RELAY_CALLER | RELAY_CALLED);
	rig_release(&r);
}

static void the_budget_of_all_ends_all_links(void **state) {
	(void)state;
	struct relay_rig r;
	int one[2], two[2];
	rig_init_for_all(&r, 1000);
	rig_stations(&r, 4);
	rig_join(&r, 0, 1, 5, one);
	rig_join(&r, 2, 3, 5, two);
	relay_forwarded(r.core, r.now_us, one[0], 600);
	assert_int_equal(relay_allowance(r.core, r.now_us, two[1]), 400);
	rig_drain(&r);
	assert_int_equal(r.n_closed, 0);
	relay_forwarded(r.core, r.now_us, two[1], 400);
	rig_drain(&r);
	assert_int_equal(r.n_closed, 4);
	assert_int_equal(totals(&r)->links_now, 0);
	assert_int_equal(rig_call(&r, 0, 2, 5), RELAY_REFUSED);
	assert_refused(&r, RELAY_REFUSE_BUDGET);
	assert_int_equal(r.sent[0].frame.refused.whose, 0);
	assert_true(r.sent[0].frame.refused.wait_ms > 0);
	r.now_us += INT64_C(86400) * RV_US_PER_S;
	assert_int_equal(rig_call(&r, 0, 2, 5), RELAY_RING);
	rig_release(&r);
}

static void the_rate_holds_for_all_links_together(void **state) {
	(void)state;
	struct relay_rig r;
	int one[2], two[2];
	uint64_t passed = 0;
	rig_init(&r, 0, 100000);
	rig_stations(&r, 4);
	rig_join(&r, 0, 1, 5, one);
	rig_join(&r, 2, 3, 5, two);
	for (int tick = 0; tick < 100; tick++) {
		const int ends[] = {one[0], two[1]};
		rig_pass_ms(&r, RELAY_TICK_MS);
		for (int i = 0; i < 20; i++) {
			size_t n = relay_allowance(r.core, r.now_us, ends[i % 2]);
			relay_forwarded(r.core, r.now_us, ends[i % 2], n);
			passed += n;
		}
	}
	assert_in_range(passed, 950000, 1020000); /* 10 s */
	rig_release(&r);
}

/* ---- strangers ---- */

static void strangers_do_not_keep_others_out(void **state) {
	(void)state;
	struct relay_rig r;
	char host[32];
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	int kept = 0;
	for (int i = 0; i < 10000; i++)
		kept += rig_accept(&r, "203.0.113.9") >= 0;
	assert_int_equal(kept, NET_RELAY_STRANGERS_PER_ADDRESS);
	r.station[1] = rig_hello(&r, 1, &r.run, 1);
	assert_int_equal(r.n_closed, 0);
	for (int i = 0; i < 10000; i++) { /* from as many addresses: the oldest goes */
		rig_clear(&r);
		(void)snprintf(host, sizeof host, "10.1.%d.%d", i / 250, i % 250);
		int connection = rig_accept(&r, host);
		assert_true(connection >= 0 && r.n_closed <= 1 && !rig_was_closed(&r, connection));
	}
	rig_clear(&r);
	r.station[2] = rig_hello(&r, 2, &r.run, 2);
	assert_false(rig_was_closed(&r, r.station[0]) || rig_was_closed(&r, r.station[1]) ||
				 rig_was_closed(&r, r.station[2]));
	assert_int_equal(rig_call(&r, 0, 2, 5), RELAY_RING);
	rig_clear(&r);
	rig_pass_ms(&r, NET_RELAY_GREETING_MS);
	assert_int_equal(r.n_closed, NET_RELAY_STRANGERS - 1); /* the last HELLO made room for itself */
	assert_int_equal(totals(&r)->stations_now, 3);
	rig_release(&r);
}

/* A line with IPv6 has more addresses than anyone can count. Meanwhile one is shaking hands. */
static void strangers_of_one_line_are_counted_together(void **state) {
	(void)state;
	struct relay_rig r;
	char host[48];
	int kept = 0;
	rig_init(&r, 0, 0);
	const int honest = rig_accept(&r, "192.0.2.1");
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(host, sizeof host, "2001:db8:1:2::%x", i + 1);
		kept += rig_accept(&r, host) >= 0;
	}
	assert_int_equal(kept, NET_RELAY_STRANGERS_PER_ADDRESS);
	assert_false(rig_was_closed(&r, honest));
	assert_true(rig_accept(&r, "2001:db8:1:3::1") >= 0);
	rig_release(&r);
}

static void a_stranger_says_hello_first(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	int connection = rig_accept(&r, "192.0.2.1");
	relay_authenticated(r.core, connection, r.members[0].key);
	relay_take_frame(r.core, r.now_us, connection, &(struct relay_frame){.type = RELAY_PING});
	rig_drain(&r);
	assert_int_equal(r.n_sent, 0);
	assert_true(rig_was_closed(&r, connection));
	rig_release(&r);
}

/* Fills all links; the next call is refused, until one of them ends. */
static void links_are_bounded(void **state) {
	(void)state;
	struct relay_rig r;
	enum { PEERS = 40 };
	struct pair_end ends[PEERS];
	int stations[PEERS], made = 0;
	struct identity id;
	rig_init(&r, 0, 0);
	for (int i = 0; i < PEERS; i++) {
		const uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)i, 99};
		identity_of_seed(seed, &id);
		r.members[0] = id;
		stations[i] = rig_hello(&r, 0, &r.run, (uint32_t)i);
		ends[i].member = (uint32_t)i;
		memcpy(ends[i].key, id.key, NET_KEY_BYTES);
	}
	for (int a = 0; a < PEERS; a++)
		for (int b = 0; b < a && made <= NET_RELAY_LINKS; b++, made++) {
			uint8_t ticket[NET_SIG_BYTES];
			pair_ticket_sign(&r.run, r.run_id, 1, 1, &ends[a], &ends[b], ticket);
			rig_clear(&r);
			r.station[0] = stations[a];
			rig_call_with(&r, 0, (uint32_t)b, 1, 1, ticket);
			assert_int_equal(r.sent[0].frame.type, made < NET_RELAY_LINKS ? RELAY_RING : RELAY_REFUSED);
		}
	assert_refused(&r, RELAY_REFUSE_FULL);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_with_its_ticket_has_a_station),
		cmocka_unit_test(a_ticket_of_another_run_or_member_is_refused),
		cmocka_unit_test(a_new_station_of_a_member_replaces_its_former_one),
		cmocka_unit_test(a_station_answers_pings_until_it_is_silent_or_leaves),
		cmocka_unit_test(a_station_that_floods_is_closed),
		cmocka_unit_test(a_call_rings_both_and_joins_them),
		cmocka_unit_test(a_ticket_for_others_is_refused),
		cmocka_unit_test(a_ticket_of_an_earlier_round_is_stale),
		cmocka_unit_test(members_of_any_number_come_and_go),
		cmocka_unit_test(nobody_is_called_who_is_absent_or_banned),
		cmocka_unit_test(calls_have_a_pace),
		cmocka_unit_test(both_calling_at_once_make_one_call),
		cmocka_unit_test(a_repeated_call_voids_the_former_tokens),
		cmocka_unit_test(a_token_is_taken_once),
		cmocka_unit_test(a_token_gets_old),
		cmocka_unit_test(a_later_call_replaces_the_link),
		cmocka_unit_test(an_idle_link_is_closed),
		cmocka_unit_test(a_spent_budget_ends_its_members_links),
		cmocka_unit_test(two_budgets_may_end_at_once),
		cmocka_unit_test(the_budget_of_all_ends_all_links),
		cmocka_unit_test(the_rate_holds_for_all_links_together),
		cmocka_unit_test(strangers_do_not_keep_others_out),
		cmocka_unit_test(strangers_of_one_line_are_counted_together),
		cmocka_unit_test(a_stranger_says_hello_first),
		cmocka_unit_test(links_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
