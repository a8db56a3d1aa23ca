/* test_worker_reach_core.c: the stations of a worker: where they are, and when they are tried
 * again (worker/reach/reach_core.h). */
#include "tests/worker/reach_scene.h"

#include <stdio.h>
#include <string.h>

static void goes_to_the_second(struct scene *s) {
	s->connects = 0;
	for (int i = 0; i < 1000 && strcmp(s->at[0].addr, "10.0.0.2:7435") != 0; i++)
		scene_advance(s, S / 10);
	assert_int_equal(s->connects, 3); /* two tries at the first */
	scene_comes_up(s, 0);
	scene_reflects_all(s, 0);
	assert_int_equal(reach_core_relay(s->core), 2);
}

static void is_lost(struct scene *s, int station) {
	s->is_connected[station] = false;
	reach_core_lost(s->core, s->now_us, station, "connection reset");
}

/* ---- home ---- */

static void without_relays_there_is_nothing_to_do(void **state) {
	struct scene *s = *state;
	reach_core_want(s->core, s->now_us, 5, false);
	reach_core_hurry(s->core, s->now_us);
	assert_true(reach_core_deadline_us(s->core) == INT64_MAX);
	assert_int_equal(s->connects + s->asks, 0);
	assert_int_equal(reach_core_relay(s->core), 0);
}

static void it_has_its_home_at_the_first_relay(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 2);
	scene_comes_up(s, 0);
	assert_string_equal(s->text, "192.0.2.7:4000");
	assert_string_equal(s->at[0].addr, "10.0.0.1:7435");
	assert_int_equal(s->frames[0].type, RELAY_HELLO);
	assert_int_equal(s->frames[0].hello.member, SCENE_SELF);
	scene_list_relays(s, 2); /* the same again changes nothing */
	assert_int_equal(s->connects, 1);
	assert_int_equal(s->closes, 0);
}

static void it_pings_and_notices_silence(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	for (int i = 0; i < 20; i++) {
		scene_advance(s, 10 * S);
		scene_pongs(s);
	}
	assert_true(reach_core_relay(s->core) > 0);
	assert_in_range(s->sent, 9, 12);
	assert_int_equal(s->frames[2].type, RELAY_PING);
	scene_advance(s, 50 * S);
	assert_int_equal(s->downs, 1);
	assert_int_equal(s->closes, 1);
	assert_int_equal(s->connects, 2);
	assert_string_equal(s->text, "it no longer answers");
}

static void where_nobody_answers_pauses_double_and_one_event_tells(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	scene_advance(s, 1200 * (int64_t)S);
	assert_in_range(s->connects, 15, 30); /* 10 s to give up, and at most 60 s of pause */
	assert_int_equal(s->downs, 1);
	assert_string_equal(s->text, "it does not answer in time");
	scene_comes_up(s, 0);
	assert_int_equal(s->ups, 1);
}

static void after_a_change_of_the_network_it_must_answer_soon(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	reach_core_hurry(s->core, s->now_us);
	assert_int_equal(s->frames[1].type, RELAY_PING);
	scene_advance(s, 4 * S);
	scene_pongs(s);
	scene_advance(s, 4 * S);
	assert_true(reach_core_relay(s->core) > 0);
	reach_core_hurry(s->core, s->now_us);
	scene_advance(s, 6 * S);
	assert_int_equal(s->downs, 1);
	s->connects = 0;
	reach_core_hurry(s->core, s->now_us); /* not connected: at once */
	assert_int_equal(s->connects, 1);
}

static void a_dead_relay_is_left_for_the_next_of_the_list(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 3);
	is_lost(s, 0);
	goes_to_the_second(s);
}

/* Addresses of one key are one relay: the next of them is tried, then the next relay. */
static void a_relay_is_tried_at_each_of_its_addresses(void **state) {
	static const char *const addrs[] = {"10.0.0.1:7435", "[2001:db8::1]:7435", "10.0.0.2:7435"};
	struct scene *s = *state;
	char tried[6][NET_ADDR_BYTES];
	s->doc.n_relays = 3;
	for (int i = 0; i < 3; i++) {
		s->doc.relays[i] = (struct relay_ref){.key = {i < 2 ? 1 : 2}};
		(void)snprintf(s->doc.relays[i].addr, NET_ADDR_BYTES, "%s", addrs[i]);
	}
	reach_core_follow(s->core, s->now_us, &s->doc);
	for (int n = 0; n < 6;) {
		int before = s->connects;
		scene_advance(s, S / 10);
		if (s->connects > before)
			memcpy(tried[n++], s->at[0].addr, NET_ADDR_BYTES);
	}
	static const int expected[] = {0, 1, 2, 2, 0, 1};
	for (int n = 0; n < 6; n++)
		assert_string_equal(tried[n], addrs[expected[n]]);
	scene_add_member(s, 5, 2, "192.0.2.5:7434"); /* a place of the same relay */
	scene_comes_up(s, 0);
	assert_int_equal(reach_core_relay(s->core), 1);
	scene_reflects_all(s, 0);
	reach_core_want(s->core, s->now_us, 5, false);
	assert_int_equal(s->asks, 1); /* they are at one relay */
	assert_false(s->is_connected[1]);
}

static void a_station_stays_at_its_relay_when_the_list_changes(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 2);
	const struct relay_ref first = s->doc.relays[0];
	s->doc.relays[0] = s->doc.relays[1];
	s->doc.relays[1] = first;
	reach_core_follow(s->core, s->now_us, &s->doc);
	assert_int_equal(reach_core_relay(s->core), 2);
	assert_int_equal(s->connects, 1);
	s->doc.n_relays = 1; /* its own is gone */
	reach_core_follow(s->core, s->now_us, &s->doc);
	assert_int_equal(s->closes, 1);
	scene_comes_up(s, 0);
	assert_string_equal(s->at[0].addr, "10.0.0.2:7435");
}

static void frames_that_must_not_come_end_the_station(void **state) {
	static const struct relay_frame wrong[] = {
		{.type = RELAY_HELLO},
		{.type = RELAY_SEEN, .seen = {.at = {.host = "192.0.2.7", .port = 4000}}},
		{.type = RELAY_PONG, .number = 1},
		{.type = RELAY_REFUSED, .refused = {.peer = 5, .way = WAY_FORWARD, .reason = RELAY_REFUSE_FULL}},
		{.type = RELAY_RING, .ring = {.peer = SCENE_SELF}},
		{.type = RELAY_OPEN, .open = {.peer = SCENE_SELF, .at = {.host = "192.0.2.9", .port = 1}}},
	};
	struct scene *s = *state;
	scene_list_relays(s, 1);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		scene_comes_up(s, 0);
		int closes = s->closes;
		scene_gets(s, 0, &wrong[i], RV_E_PROTOCOL);
		assert_int_equal(s->closes, closes + 1);
		assert_int_equal(reach_core_relay(s->core), 0);
	}
	assert_int_equal(s->offers, 0);
}

static void before_seen_a_relay_may_say_nothing_else(void **state) {
	struct scene *s = *state;
	const struct relay_frame ring = {.type = RELAY_RING, .ring = {.peer = 5}};
	scene_list_relays(s, 1);
	scene_advance(s, 0);
	reach_core_connected(s->core, s->now_us, 0);
	scene_gets(s, 0, &ring, RV_E_PROTOCOL);
	assert_int_equal(s->offers, 0);
	assert_non_null(strstr(s->text, "SEEN first"));
}

/* A relay that floods is left alone for a while, whatever it sends. */
static void a_relay_that_floods_is_left(void **state) {
	struct scene *s = *state;
	const struct relay_frame proof = {.type = RELAY_PROOF, .proof = {.at = {.host = "192.0.2.7", .port = 7434}}};
	const struct relay_frame rings = {.type = RELAY_RING, .ring = {.peer = 5, .token = {9, 8}}};
	const struct relay_frame floods[] = {proof, rings};
	for (size_t k = 0; k < sizeof floods / sizeof floods[0]; k++) {
		struct rv_errtext et;
		int n = 0;
		if (k == 0)
			scene_is_home(s, 1);
		else
			scene_comes_up(s, 0);
		while (reach_core_frame(s->core, s->now_us, 0, &floods[k], &et) == RV_OK)
			assert_in_range(++n, 1, 300);
		assert_int_equal(reach_core_relay(s->core), 0);
		s->connects = 0;
		scene_advance(s, 29 * S);
		assert_int_equal(s->connects, 0);
	}
}

/* ---- guest ---- */

static void is_at_the_second(struct scene *s, int n_relays) {
	scene_is_home(s, n_relays);
	is_lost(s, 0);
	goes_to_the_second(s);
}

/* Two that have their homes at different relays meet at the earlier one, and nobody leaves its
 * own. */
static void it_is_a_guest_at_the_earlier_relay_of_a_peer(void **state) {
	struct scene *s = *state;
	is_at_the_second(s, 3);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	scene_add_member(s, 6, 3, "192.0.2.6:7434");
	reach_core_want(s->core, s->now_us, 6, false); /* is a guest here */
	assert_false(s->is_connected[1]);
	assert_true(s->asked == UINT64_C(1) << 6);
	scene_gets_tickets(s);
	assert_int_equal(s->sent_by[s->sent - 1], 0);
	reach_core_want(s->core, s->now_us, 5, false);
	assert_true(s->is_connected[1]);
	assert_string_equal(s->at[1].addr, "10.0.0.1:7435");
	assert_true(s->asked == 0);
	scene_comes_up(s, 1);
	scene_reflects_all(s, 1);
	assert_true(s->asked == UINT64_C(1) << 5);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
	assert_int_equal(s->sent_by[s->sent - 1], 1);
	assert_int_equal(reach_core_relay(s->core), 2);
	assert_true(reach_core_relay(s->core) > 0);
}

static void is_guest(struct scene *s) {
	is_at_the_second(s, 2);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	reach_core_want(s->core, s->now_us, 5, false);
	scene_comes_up(s, 1);
	scene_reflects_all(s, 1);
}

static void an_idle_guest_leaves(void **state) {
	struct scene *s = *state;
	is_guest(s);
	s->asked = 0;
	reach_core_tickets(s->core, s->now_us, NULL);
	for (int i = 0; i < 59; i++) {
		scene_advance(s, 1 * S);
		scene_pongs(s);
	}
	assert_true(s->is_connected[1]);
	s->sent = 0;
	scene_advance(s, 2 * S);
	assert_false(s->is_connected[1]);
	assert_int_equal(s->frames[s->sent - 1].type, RELAY_LEAVE);
	for (int i = 0; i < REACH_REFLECTIONS; i++)
		assert_true(!s->reflections[i].is_asked || i < REACH_REFLECTIONS / 2);
	assert_true(s->is_connected[0]);
}

/* A relay closes the first of two stations of a member: so there is never a second. */
static void a_guest_becomes_the_home_when_the_home_fails(void **state) {
	struct scene *s = *state;
	is_guest(s);
	is_lost(s, 0);
	s->connects = 0;
	for (int tries = 0; tries < 2; tries++) {
		for (int i = 0; i < 100 && !s->is_connected[0]; i++)
			scene_advance(s, S / 10);
		is_lost(s, 0);
	}
	assert_int_equal(s->connects, 2);
	assert_int_equal(reach_core_relay(s->core), 1);
	assert_true(reach_core_relay(s->core) > 0);
	scene_advance(s, 20 * S);
	assert_int_equal(s->connects, 2);
}

static void a_guest_that_is_lost_is_not_tried_for_its_own_sake(void **state) {
	struct scene *s = *state;
	is_guest(s);
	s->asked = 0;
	reach_core_tickets(s->core, s->now_us, NULL);
	is_lost(s, 1);
	s->connects = 0;
	scene_advance(s, 15 * S);
	assert_int_equal(s->connects, 0);
	reach_core_want(s->core, s->now_us, 5, false);
	assert_int_equal(s->connects, 1);
}

/* The home is at the second of n relays; the first one, of peer 5, has another address. */
static void is_away_from_two_addresses(struct scene *s, int n_relays) {
	is_at_the_second(s, n_relays);
	struct relay_ref *other = &s->doc.relays[s->doc.n_relays++];
	*other = s->doc.relays[0];
	(void)snprintf(other->addr, sizeof other->addr, "[2001:db8::1]:7435");
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	s->downs = 0;
}

/* A member without IPv4 reaches no relay at its first address. */
static void a_guest_goes_to_the_next_address_at_once(void **state) {
	struct scene *s = *state;
	is_away_from_two_addresses(s, 2);
	reach_core_want(s->core, s->now_us, 5, false);
	assert_string_equal(s->at[1].addr, "10.0.0.1:7435");
	is_lost(s, 1);
	assert_true(s->is_connected[1]);
	assert_string_equal(s->at[1].addr, "[2001:db8::1]:7435");
	assert_int_equal(s->downs, 0);
	scene_comes_up(s, 1);
	scene_reflects_all(s, 1);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
	assert_int_equal(s->sent_by[s->sent - 1], 1);
	is_lost(s, 1);
	scene_gets_tickets(s); /* for a call at the home */
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, 0);
	s->connects = 0;
	reach_core_want(s->core, s->now_us, 5, false);
	assert_int_equal(s->connects, 1);
	assert_string_equal(s->at[1].addr, "[2001:db8::1]:7435"); /* which answered */
}

static void a_guest_is_down_when_no_address_has_answered(void **state) {
	struct scene *s = *state;
	is_away_from_two_addresses(s, 2);
	s->connects = 0;
	reach_core_want(s->core, s->now_us, 5, false);
	is_lost(s, 1);
	is_lost(s, 1);
	assert_int_equal(s->connects, 2);
	assert_int_equal(s->downs, 1);
	assert_false(s->is_connected[1]);
	assert_true(s->asked == UINT64_C(1) << 5); /* the pair goes on at the home */
}

/* A packet that nobody answers takes longer than a pair waits. */
static void a_silent_address_costs_a_guest_its_time_once(void **state) {
	struct scene *s = *state;
	is_away_from_two_addresses(s, 3);
	reach_core_want(s->core, s->now_us, 5, false);
	scene_advance(s, 9 * S);
	scene_gets_tickets(s); /* for a call at the home */
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, 0);
	assert_string_equal(s->at[1].addr, "10.0.0.3:7435");
	is_lost(s, 1);
	reach_core_want(s->core, s->now_us, 5, false);
	assert_string_equal(s->at[1].addr, "[2001:db8::1]:7435");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		SCENE_TEST(without_relays_there_is_nothing_to_do),
		SCENE_TEST(it_has_its_home_at_the_first_relay),
		SCENE_TEST(it_pings_and_notices_silence),
		SCENE_TEST(where_nobody_answers_pauses_double_and_one_event_tells),
		SCENE_TEST(after_a_change_of_the_network_it_must_answer_soon),
		SCENE_TEST(a_dead_relay_is_left_for_the_next_of_the_list),
		SCENE_TEST(a_relay_is_tried_at_each_of_its_addresses),
		SCENE_TEST(a_station_stays_at_its_relay_when_the_list_changes),
		SCENE_TEST(frames_that_must_not_come_end_the_station),
		SCENE_TEST(before_seen_a_relay_may_say_nothing_else),
		SCENE_TEST(a_relay_that_floods_is_left),
		SCENE_TEST(it_is_a_guest_at_the_earlier_relay_of_a_peer),
		SCENE_TEST(an_idle_guest_leaves),
		SCENE_TEST(a_guest_becomes_the_home_when_the_home_fails),
		SCENE_TEST(a_guest_that_is_lost_is_not_tried_for_its_own_sake),
		SCENE_TEST(a_guest_goes_to_the_next_address_at_once),
		SCENE_TEST(a_guest_is_down_when_no_address_has_answered),
		SCENE_TEST(a_silent_address_costs_a_guest_its_time_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
