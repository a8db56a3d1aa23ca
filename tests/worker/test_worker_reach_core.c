/* test_worker_reach_core.c: the station of a worker: where it is, when it tries again, and how a
 * wish of the mesh becomes a call, and a RING a route (worker/reach/reach_core.h). */
#include "tests/common/check.h"
#include "worker/reach/reach_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { S = 1000000, MAX_SENT = 64 };

struct scene {
	struct reach_core *core;
	int64_t now_us;
	int connects, closes, sent, offers, ups, downs, refusals, asks;
	struct relay_ref at; /* of the last connect */
	struct relay_frame frames[MAX_SENT];
	uint64_t asked;
	uint32_t offered;
	uint8_t token[NET_TOKEN_BYTES];
	char text[RV_ERRTEXT_BYTES];
	uint64_t ponged;
	struct document doc;
};

static void on_connect(void *ctx, const struct relay_ref *to) {
	struct scene *s = ctx;
	s->connects++;
	s->at = *to;
}

static void on_close(void *ctx) {
	((struct scene *)ctx)->closes++;
}

static void on_send(void *ctx, const struct relay_frame *m) {
	struct scene *s = ctx;
	assert_true(s->sent < MAX_SENT);
	s->frames[s->sent++] = *m;
}

static void on_ask(void *ctx, uint64_t peers) {
	struct scene *s = ctx;
	s->asks++;
	s->asked = peers;
}

static void on_offer(void *ctx, uint32_t peer, const uint8_t token[NET_TOKEN_BYTES]) {
	struct scene *s = ctx;
	s->offers++;
	s->offered = peer;
	memcpy(s->token, token, sizeof s->token);
}

static void on_tell(void *ctx, const struct reach_event *e) {
	struct scene *s = ctx;
	s->ups += e->type == REACH_SAYS_UP;
	s->downs += e->type == REACH_SAYS_DOWN;
	s->refusals += e->type == REACH_SAYS_REFUSED;
	(void)snprintf(s->text, sizeof s->text, "%s", e->text);
}

static void list_relays(struct scene *s, int n) {
	s->doc.n_relays = (uint8_t)n;
	for (int i = 0; i < n; i++) {
		s->doc.relays[i] = (struct relay_ref){.key = {(uint8_t)(i + 1)}};
		(void)snprintf(s->doc.relays[i].addr, NET_ADDR_BYTES, "10.0.0.%d:7435", i + 1);
	}
	reach_core_follow(s->core, s->now_us, &s->doc);
}

static int setup(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	assert_non_null(s);
	const struct reach_config cfg = {.ops = {.ctx = s,
											 .connect = on_connect,
											 .close = on_close,
											 .send = on_send,
											 .ask_tickets = on_ask,
											 .offer = on_offer,
											 .tell = on_tell},
									 .hello = {.version = RELAY_VERSION, .member = 3},
									 .seed = 1};
	s->core = reach_core_init(malloc(reach_core_size()), &cfg);
	s->now_us = 1000 * (int64_t)S;
	*state = s;
	return 0;
}

static int teardown(void **state) {
	struct scene *s = *state;
	free(s->core);
	free(s);
	return 0;
}

static void advance(struct scene *s, int64_t us) {
	int64_t end_us = s->now_us + us;
	for (int64_t at; (at = reach_core_deadline_us(s->core)) <= end_us;) {
		s->now_us = at > s->now_us ? at : s->now_us;
		reach_core_tick(s->core, s->now_us);
	}
	s->now_us = end_us;
}

static void gets(struct scene *s, const struct relay_frame *m, enum rv_err expected) {
	struct rv_errtext et;
	assert_int_equal(reach_core_frame(s->core, s->now_us, m, &et), expected);
}

/* Answers the last PING, if that has not been done. */
static void pongs(struct scene *s) {
	struct relay_frame pong = {.type = RELAY_PONG};
	for (int i = 0; i < s->sent; i++)
		pong.number = s->frames[i].type == RELAY_PING ? s->frames[i].number : pong.number;
	if (pong.number > s->ponged)
		gets(s, &pong, RV_OK);
	s->ponged = pong.number;
}

static void comes_up(struct scene *s) {
	const struct relay_frame seen = {.type = RELAY_SEEN, .seen = {.at = {.host = "192.0.2.7", .port = 4000}}};
	for (int i = 0; i < 1000 && reach_core_state(s->core) != REACH_CONNECTING; i++)
		advance(s, S / 10);
	reach_core_connected(s->core, s->now_us);
	gets(s, &seen, RV_OK);
	assert_int_equal(reach_core_state(s->core), REACH_UP);
}

static void station_at_the_first(struct scene *s, int n_relays) {
	list_relays(s, n_relays);
	comes_up(s);
	assert_int_equal(reach_core_relay(s->core), 1);
}

static void goes_to_the_second(struct scene *s) {
	s->connects = 0;
	for (int i = 0; i < 1000 && strcmp(s->at.addr, "10.0.0.2:7435") != 0; i++)
		advance(s, S / 10);
	assert_int_equal(s->connects, 3); /* two tries at the first */
	comes_up(s);
}

/* ---- the station ---- */

static void without_relays_there_is_nothing_to_do(void **state) {
	struct scene *s = *state;
	reach_core_want(s->core, s->now_us, 5);
	reach_core_hurry(s->core, s->now_us);
	assert_true(reach_core_deadline_us(s->core) == INT64_MAX);
	assert_int_equal(s->connects + s->asks, 0);
	assert_int_equal(reach_core_relay(s->core), 0);
}

static void it_has_a_station_at_the_first_relay(void **state) {
	struct scene *s = *state;
	station_at_the_first(s, 2);
	assert_string_equal(s->at.addr, "10.0.0.1:7435");
	assert_int_equal(s->frames[0].type, RELAY_HELLO);
	assert_int_equal(s->frames[0].hello.member, 3);
	assert_string_equal(s->text, "192.0.2.7:4000");
	list_relays(s, 2); /* the same again changes nothing */
	assert_int_equal(s->connects, 1);
	assert_int_equal(s->closes, 0);
}

static void it_pings_and_notices_silence(void **state) {
	struct scene *s = *state;
	station_at_the_first(s, 1);
	for (int i = 0; i < 20; i++) {
		advance(s, 10 * S);
		pongs(s);
	}
	assert_int_equal(reach_core_state(s->core), REACH_UP);
	assert_in_range(s->sent, 9, 12);
	assert_int_equal(s->frames[2].type, RELAY_PING);
	advance(s, 50 * S);
	assert_int_equal(s->downs, 1);
	assert_int_equal(s->closes, 1);
	assert_int_equal(s->connects, 2);
	assert_string_equal(s->text, "it no longer answers");
}

static void where_nobody_answers_pauses_double_and_one_event_tells(void **state) {
	struct scene *s = *state;
	list_relays(s, 1);
	advance(s, 1200 * (int64_t)S);
	assert_in_range(s->connects, 15, 30); /* 10 s to give up, and at most 60 s of pause */
	assert_int_equal(s->downs, 1);
	assert_string_equal(s->text, "it does not answer in time");
	s->connects = 0;
	comes_up(s);
	assert_int_equal(s->ups, 1);
}

static void after_a_change_of_the_network_it_must_answer_soon(void **state) {
	struct scene *s = *state;
	station_at_the_first(s, 1);
	reach_core_hurry(s->core, s->now_us);
	assert_int_equal(s->frames[1].type, RELAY_PING);
	advance(s, 4 * S);
	pongs(s);
	advance(s, 4 * S);
	assert_int_equal(reach_core_state(s->core), REACH_UP);
	reach_core_hurry(s->core, s->now_us);
	advance(s, 6 * S);
	assert_int_equal(s->downs, 1);
	s->connects = 0;
	reach_core_hurry(s->core, s->now_us); /* not connected: at once */
	assert_int_equal(s->connects, 1);
}

static void a_dead_relay_is_left_for_the_next_of_the_list(void **state) {
	struct scene *s = *state;
	station_at_the_first(s, 3);
	reach_core_lost(s->core, s->now_us, "connection reset");
	goes_to_the_second(s);
	assert_int_equal(reach_core_relay(s->core), 2);
}

static void a_station_stays_at_its_relay_when_the_list_changes(void **state) {
	struct scene *s = *state;
	station_at_the_first(s, 2);
	const struct relay_ref first = s->doc.relays[0];
	s->doc.relays[0] = s->doc.relays[1];
	s->doc.relays[1] = first;
	reach_core_follow(s->core, s->now_us, &s->doc);
	assert_int_equal(reach_core_relay(s->core), 2);
	assert_int_equal(s->connects, 1);
	s->doc.n_relays = 1; /* its own is gone */
	reach_core_follow(s->core, s->now_us, &s->doc);
	assert_int_equal(s->closes, 1);
	comes_up(s);
	assert_string_equal(s->at.addr, "10.0.0.2:7435");
}

static void frames_that_must_not_come_end_the_station(void **state) {
	static const struct relay_frame wrong[] = {
		{.type = RELAY_HELLO},
		{.type = RELAY_SEEN, .seen = {.at = {.host = "192.0.2.7", .port = 4000}}},
		{.type = RELAY_RING, .ring = {.peer = NET_MAX_MEMBERS}},
	};
	struct scene *s = *state;
	list_relays(s, 1);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		comes_up(s);
		int closes = s->closes;
		gets(s, &wrong[i], RV_E_PROTOCOL);
		assert_int_equal(s->closes, closes + 1);
		assert_int_equal(reach_core_relay(s->core), 0);
	}
	assert_int_equal(s->offers, 0);
}

static void before_seen_a_relay_may_say_nothing_else(void **state) {
	struct scene *s = *state;
	const struct relay_frame ring = {.type = RELAY_RING, .ring = {.peer = 5}};
	list_relays(s, 1);
	advance(s, 0);
	reach_core_connected(s->core, s->now_us);
	gets(s, &ring, RV_E_PROTOCOL);
	assert_int_equal(s->offers, 0);
	assert_non_null(strstr(s->text, "SEEN first"));
}

/* ---- calls ---- */

static void a_wish_becomes_a_ticket_and_a_call(void **state) {
	struct scene *s = *state;
	const struct pair_reply reply = {
		.term = 1, .round = 9, .n = 2, .tickets = {{.peer = 5, .signature = {42}}, {.peer = 6}}};
	station_at_the_first(s, 1);
	reach_core_want(s->core, s->now_us, 5);
	reach_core_want(s->core, s->now_us, 7);
	assert_int_equal(s->asks, 1); /* one request at a time */
	assert_true(s->asked == UINT64_C(1) << 5);
	int before = s->sent;
	reach_core_tickets(s->core, s->now_us, &reply);
	assert_int_equal(s->sent, before + 1); /* nobody asked for 6 */
	const struct relay_frame *m = &s->frames[before];
	assert_int_equal(m->type, RELAY_CALL);
	assert_int_equal(m->call.peer, 5);
	assert_int_equal(m->call.round, 9);
	assert_int_equal(m->call.ticket[0], 42);
	reach_core_want(s->core, s->now_us, 7);
	assert_true(s->asked == UINT64_C(1) << 7);
	reach_core_tickets(s->core, s->now_us, NULL); /* the coordinator is away: the mesh will ask again */
	assert_int_equal(s->sent, before + 1);
}

static void a_wish_waits_for_the_station(void **state) {
	struct scene *s = *state;
	list_relays(s, 1);
	reach_core_want(s->core, s->now_us, 5);
	assert_int_equal(s->asks, 0);
	comes_up(s);
	assert_int_equal(s->asks, 1);
}

static void a_ring_becomes_a_route(void **state) {
	struct scene *s = *state;
	const struct relay_frame ring = {.type = RELAY_RING, .ring = {.peer = 5, .token = {9, 8}}};
	const struct relay_frame refused = {.type = RELAY_REFUSED, .refused = {.peer = 6, .reason = RELAY_REFUSE_BUDGET}};
	const struct pair_reply reply = {.n = 1, .tickets = {{.peer = 6}}};
	station_at_the_first(s, 1);
	gets(s, &ring, RV_OK);
	assert_int_equal(s->offers, 1);
	assert_int_equal(s->offered, 5);
	assert_int_equal(s->token[1], 8);
	reach_core_want(s->core, s->now_us, 6);
	reach_core_tickets(s->core, s->now_us, &reply);
	gets(s, &refused, RV_OK);
	assert_int_equal(s->refusals, 1);
	gets(s, &refused, RV_E_PROTOCOL); /* once for a call */
}

/* A relay that floods is left alone for a while, whatever it sends. */
static void a_relay_that_floods_is_left(void **state) {
	struct scene *s = *state;
	const struct relay_frame rings = {.type = RELAY_RING, .ring = {.peer = 5, .token = {9, 8}}};
	const struct relay_frame floods[] = {{.type = RELAY_PONG, .number = 1},
										 {.type = RELAY_REFUSED, .refused = {.peer = 6, .reason = RELAY_REFUSE_BUDGET}},
										 rings};
	for (size_t k = 0; k < sizeof floods / sizeof floods[0]; k++) {
		struct rv_errtext et;
		int n = 0;
		if (k == 0)
			station_at_the_first(s, 1);
		else
			comes_up(s);
		while (reach_core_frame(s->core, s->now_us, &floods[k], &et) == RV_OK)
			assert_in_range(++n, 1, 300);
		assert_int_equal(reach_core_state(s->core), REACH_IDLE);
		s->connects = 0;
		advance(s, 29 * S);
		assert_int_equal(s->connects, 0);
	}
	assert_int_equal(s->refusals, 0);
}

/* Two that have their stations at different relays meet at the earlier one. */
static void it_goes_to_the_earlier_relay_of_a_peer(void **state) {
	struct scene *s = *state;
	station_at_the_first(s, 3);
	reach_core_lost(s->core, s->now_us, "connection reset");
	goes_to_the_second(s);
	assert_int_equal(reach_core_relay(s->core), 2);
	s->doc.n_members = 2;
	s->doc.members[0] = (struct member_ref){.member = 5, .relay = 1};
	s->doc.members[1] = (struct member_ref){.member = 6, .relay = 3};
	reach_core_follow(s->core, s->now_us, &s->doc);
	int before = s->connects;
	reach_core_want(s->core, s->now_us, 6); /* comes here */
	assert_int_equal(s->connects, before);
	reach_core_want(s->core, s->now_us, 5);
	assert_int_equal(s->connects, before + 1);
	assert_string_equal(s->at.addr, "10.0.0.1:7435");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(without_relays_there_is_nothing_to_do),
		TEST(it_has_a_station_at_the_first_relay),
		TEST(it_pings_and_notices_silence),
		TEST(where_nobody_answers_pauses_double_and_one_event_tells),
		TEST(after_a_change_of_the_network_it_must_answer_soon),
		TEST(a_dead_relay_is_left_for_the_next_of_the_list),
		TEST(a_station_stays_at_its_relay_when_the_list_changes),
		TEST(frames_that_must_not_come_end_the_station),
		TEST(before_seen_a_relay_may_say_nothing_else),
		TEST(a_wish_becomes_a_ticket_and_a_call),
		TEST(a_wish_waits_for_the_station),
		TEST(a_ring_becomes_a_route),
		TEST(a_relay_that_floods_is_left),
		TEST(it_goes_to_the_earlier_relay_of_a_peer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
