/* test_worker_reach_pairs.c: the ways of a pair, from a wish of the mesh to a route
 * (worker/reach/core_pairs.c). */
#include "tests/worker/reach_scene.h"

#include <stdio.h>
#include <string.h>

static void wants(struct scene *s, uint32_t member) {
	reach_core_want(s->core, s->now_us, member, false);
}

/* The home is up, the mapping known, and the peer called for the first time. */
static void calls_5(struct scene *s, int n_relays) {
	scene_is_home(s, n_relays);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	wants(s, 5);
	scene_gets_tickets(s);
}

/* ---- tickets ---- */

static void a_wish_becomes_a_ticket_and_a_call(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	wants(s, 5);
	wants(s, 7);
	assert_int_equal(s->asks, 1); /* one request at a time */
	assert_true(s->asked == UINT64_C(1) << 5);
	const struct pair_reply reply = {
		.term = 1, .round = 9, .n = 2, .tickets = {{.peer = 5, .signature = {42}}, {.peer = 6}}};
	int before = s->sent;
	reach_core_tickets(s->core, s->now_us, &reply);
	assert_int_equal(s->sent, before + 1); /* nobody asked for 6 */
	const struct relay_frame *m = scene_called(s, 5, WAY_OPEN_V4);
	assert_int_equal(m->call.round, 9);
	assert_int_equal(m->call.ticket[0], 42);
	assert_true(s->asked == UINT64_C(1) << 7);
	reach_core_tickets(s->core, s->now_us, NULL); /* the coordinator is away: the mesh will ask again */
	assert_int_equal(s->sent, before + 1);
	assert_int_equal(s->asks, 2);
}

static void a_wish_waits_for_the_station_and_its_mapping(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	wants(s, 5);
	scene_comes_up(s, 0);
	assert_int_equal(s->asks, 0);
	scene_advance(s, 900 * MS);
	assert_int_equal(s->asks, 0);
	scene_reflects_all(s, 0);
	assert_int_equal(s->asks, 1);
}

static void a_reflection_that_does_not_answer_is_not_waited_for(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	wants(s, 5);
	scene_comes_up(s, 0);
	scene_advance(s, 1100 * MS);
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD); /* it has no mapping to be dialed at */
}

/* While another request for tickets is under way the loop waits for its end. */
static void nothing_is_due_while_tickets_are_awaited(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	scene_comes_up(s, 0);
	wants(s, 5);
	scene_advance(s, 1100 * MS);
	assert_int_equal(s->asks, 1);
	wants(s, 6);
	scene_advance(s, 2 * S);
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	assert_int_equal(s->asks, 2);
}

/* ---- the order of ways ---- */

static void an_opening_becomes_a_punch_at_its_moment(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_called(s, 5, WAY_OPEN_V4);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_int_equal(s->offers, 1);
	assert_int_equal(s->offered, 5);
	assert_int_equal(s->route.kind, ROUTE_PUNCH);
	assert_int_equal(s->route.local_port, 0);
	assert_int_equal(s->route.at.port, 7434);
	assert_true(s->route.begin_us == s->now_us + 50 * MS);
	s->paths[5] = PATH_PUNCHED;
	scene_advance(s, 100 * S / 10);
	assert_int_equal(s->asks, 1);
	assert_int_equal(s->offers, 1);
}

static void an_opening_that_brings_no_link_is_followed_by_the_relay(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	scene_advance(s, 840 * MS);
	assert_int_equal(s->asks, 1);
	scene_advance(s, 20 * MS); /* 0.8 s after its moment */
	assert_int_equal(s->asks, 2);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
	scene_rings(s, 0, 5);
	assert_int_equal(s->offers, 2);
	assert_int_equal(s->route.kind, ROUTE_RELAY);
	assert_int_equal(s->route.token[1], 8);
	assert_int_equal(s->offered_by, 0);
}

/* The mesh may still be at the punch: the relay's token is good for some seconds. */
static void a_route_that_the_mesh_does_not_take_is_offered_again(void **state) {
	struct scene *s = *state;
	calls_5(s, 2);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	s->refuses_offers = true;
	scene_rings(s, 0, 5);
	scene_advance(s, 3 * S);
	assert_in_range(s->offers, 12, 14);
	s->refuses_offers = false;
	scene_advance(s, 300 * MS);
	assert_int_equal(s->route.token[1], 8);
	s->offers = 0;
	s->paths[5] = PATH_RELAYED;
	scene_advance(s, 6 * S);
	assert_int_equal(s->offers, 0);
	assert_int_equal(s->bads, 0);
	assert_false(s->is_connected[1]);
}

static void a_route_that_the_mesh_never_takes_is_no_fault_of_the_relay(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	s->refuses_offers = true;
	for (int i = 0; i < 4; i++) {
		scene_rings(s, 0, 5);
		scene_advance(s, 9 * S);
		scene_pongs(s);
		wants(s, 5);
		scene_gets_tickets(s);
	}
	assert_int_equal(s->bads, 0);
}

/* The peer may have come to the relay a moment ago: a link by the relay would stay for long. */
static void the_peers_mapping_is_waited_for_once(void **state) {
	struct scene *s = *state;
	struct relay_frame refused = {
		.type = RELAY_REFUSED,
		.refused = {.peer = 5, .way = WAY_OPEN_V4, .reason = RELAY_REFUSE_UNMAPPED, .whose = RELAY_CALLED}};
	calls_5(s, 1);
	scene_gets(s, 0, &refused, RV_OK);
	scene_advance(s, 390 * MS);
	assert_int_equal(s->asks, 1);
	scene_advance(s, 20 * MS);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
	scene_gets(s, 0, &refused, RV_OK);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
}

/* The link of a peer that has moved is dead, which only the peer knows so far; the mesh decides. */
static void an_opening_beside_a_link_is_handed_to_the_mesh(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	s->paths[5] = PATH_PUNCHED;
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_int_equal(s->offers, 1);
}

/* The peer calls anew: it did not come to the relay, or has another address since. */
static void an_opening_takes_the_place_of_a_wait_at_the_relay(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_rings(s, 0, 5);
	scene_advance(s, 1 * S);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_int_equal(s->route.kind, ROUTE_PUNCH);
	assert_int_equal(s->openings, 1);
	s->asks = 0;
	scene_advance(s, 1 * S); /* and goes on by itself */
	assert_int_equal(s->asks, 1);
}

static void an_opening_that_the_mesh_does_not_take_is_followed_by_the_next_way(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	s->refuses_offers = true;
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_int_equal(s->openings, 0);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
}

/* A pair that can only be relayed has its call at once: no way is waited for that cannot work. */
static void a_refused_opening_is_followed_by_the_relay_at_once(void **state) {
	static const enum relay_refusal reasons[] = {RELAY_REFUSE_UNMAPPED, RELAY_REFUSE_DEPENDENT, RELAY_REFUSE_RATE};
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
		struct scene *s = *state;
		calls_5(s, 1);
		scene_refuses(s, 0, 5, WAY_OPEN_V4, reasons[i], 0);
		scene_gets_tickets(s);
		scene_called(s, 5, WAY_FORWARD);
		assert_int_equal(s->refusals, 0); /* nothing for people */
		(void)scene_teardown(state);
		(void)scene_setup(state);
	}
}

static void ipv6_comes_first_where_both_have_it(void **state) {
	struct scene *s = *state;
	s->doc.n_relays = 1;
	s->doc.relays[0] = (struct relay_ref){.key = {1}, .addr = "relay.example:7435"};
	reach_core_follow(s->core, s->now_us, &s->doc);
	scene_comes_up(s, 0);
	scene_reflects_all(s, 0);
	scene_add_member(s, 5, 1, "[2001:db8::5]:7434");
	scene_add_member(s, 6, 1, "192.0.2.6:7434");
	wants(s, 5);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V6);
	scene_refuses(s, 0, 5, WAY_OPEN_V6, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4); /* though no IPv4 address of it is known */
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
	wants(s, 6);
	scene_gets_tickets(s);
	scene_called(s, 6, WAY_OPEN_V4);
}

static void a_pair_that_has_met_meanwhile_is_not_called(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	wants(s, 5);
	s->paths[5] = PATH_DIALED;
	int before = s->sent;
	scene_gets_tickets(s);
	assert_int_equal(s->sent, before);
}

/* ---- the peer's calls ---- */

static void calls_of_a_peer_are_taken(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_int_equal(s->offers, 1);
	scene_advance(s, 1 * S);
	scene_rings(s, 0, 5);
	assert_int_equal(s->offers, 2);
	scene_advance(s, 10 * S);
	assert_int_equal(s->asks, 0); /* it makes none of its own */
}

static void a_wish_during_the_peers_opening_goes_on_by_itself(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	wants(s, 5);
	assert_int_equal(s->asks, 0);
	scene_advance(s, 900 * MS);
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD); /* not the same again */
}

/* Both call: the relay answers both with one OPEN; a refusal of the second call changes
 * nothing. */
static void a_refusal_after_the_peers_call_was_answered_is_ignored(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_RATE, 1000);
	assert_int_equal(s->asks, 1);
	assert_int_equal(s->refusals, 0);
}

/* ---- upgrades ---- */

static void is_relayed(struct scene *s) {
	calls_5(s, 1);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	scene_advance(s, 900 * MS);
	scene_gets_tickets(s);
	scene_rings(s, 0, 5);
	s->paths[5] = PATH_RELAYED;
}

/* One end dials a quarter of a round trip later: routers that answer with RST need packets that
 * cross, and the same moments again would fail again. */
static void a_relayed_pair_opens_once_more_with_other_moments(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	scene_advance(s, 0);
	reach_core_connected(s->core, s->now_us, 0);
	s->now_us += 80 * MS; /* a round trip to the relay */
	const struct relay_frame seen = {.type = RELAY_SEEN, .seen = {.at = {.host = "192.0.2.7", .port = 4000}}};
	scene_gets(s, 0, &seen, RV_OK);
	scene_reflects_all(s, 0);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	wants(s, 5);
	scene_gets_tickets(s);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	scene_advance(s, 900 * MS);
	scene_gets_tickets(s);
	scene_rings(s, 0, 5);
	s->paths[5] = PATH_RELAYED;
	s->asks = 0;
	scene_advance(s, 5 * S); /* the call ends in a link, and 6 s later */
	assert_int_equal(s->asks, 0);
	scene_advance(s, 7 * S);
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_true(s->route.begin_us == s->now_us + 50 * MS + 20 * MS); /* member 3 is the lower one */
	scene_advance(s, 60 * S / 2);
	assert_int_equal(s->asks, 1); /* no third of its own accord, and no WAY_FORWARD */
}

static void the_mesh_asks_for_upgrades(void **state) {
	struct scene *s = *state;
	is_relayed(s);
	scene_advance(s, 5 * S);
	s->asks = 0;
	reach_core_want(s->core, s->now_us, 5, true);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
	scene_opens(s, 0, 5, "192.0.2.5", 7434);
	s->paths[5] = PATH_PUNCHED;
	scene_advance(s, 20 * S);
	assert_int_equal(s->asks, 1);
}

/* In a large run a relay cannot open all pairs at once: the others follow, over some time. */
static void an_opening_for_which_a_relay_has_no_time_comes_later(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_RATE, 1000);
	scene_gets_tickets(s);
	scene_rings(s, 0, 5);
	s->paths[5] = PATH_RELAYED;
	s->asks = 0;
	for (int i = 0; i < 30; i++) {
		scene_advance(s, 1 * S);
		scene_pongs(s);
	}
	assert_int_equal(s->asks, 0);
	for (int i = 0; i < 62; i++) {
		scene_advance(s, 1 * S);
		scene_pongs(s);
	}
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
}

static void where_both_mappings_are_dependent_nothing_is_tried_again(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_DEPENDENT, 0);
	scene_gets_tickets(s);
	scene_rings(s, 0, 5);
	s->paths[5] = PATH_RELAYED;
	s->asks = 0;
	scene_advance(s, 15 * S);
	reach_core_want(s->core, s->now_us, 5, true);
	scene_advance(s, 15 * S);
	assert_int_equal(s->asks, 0);
}

static void a_new_mapping_is_a_reason_to_open_again(void **state) {
	struct scene *s = *state;
	where_both_mappings_are_dependent_nothing_is_tried_again(state);
	reach_core_hurry(s->core, s->now_us);
	scene_pongs(s);
	scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.99", 7434);
	scene_reflects(s, 0, REACH_V4, REACH_SECOND_PORT, "192.0.2.99", 7434);
	scene_advance(s, 2 * S);
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_OPEN_V4);
}

/* ---- refusals ---- */

static void a_stale_ticket_is_replaced_twice(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(s->asks, i);
		scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_STALE, 0);
		if (i < 3)
			scene_gets_tickets(s);
	}
	assert_int_equal(s->asks, 4); /* another ticket for the next way */
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
}

static void a_refusal_is_honoured_for_as_long_as_it_says(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_refuses(s, 0, 5, WAY_FORWARD, RELAY_REFUSE_BUDGET, 30000);
	assert_int_equal(s->refusals, 1);
	assert_non_null(strstr(s->text, "bytes"));
	s->asks = 0;
	for (int i = 0; i < 28; i++) {
		wants(s, 5);
		scene_pongs(s);
		scene_advance(s, 1 * S);
	}
	assert_int_equal(s->asks, 0);
	scene_advance(s, 3 * S);
	wants(s, 5);
	assert_int_equal(s->asks, 1);
}

/* ---- another relay ---- */

static void is_called_at_the_second(struct scene *s) {
	assert_string_equal(s->at[1].addr, "10.0.0.2:7435");
	scene_comes_up(s, 1);
	scene_reflects_all(s, 1);
	scene_gets_tickets(s);
	assert_int_equal(s->sent_by[s->sent - 1], 1);
	scene_called(s, 5, WAY_OPEN_V4);
	scene_refuses(s, 1, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_rings(s, 1, 5);
	assert_int_equal(s->offered_by, 1);
}

static void a_relay_that_does_not_answer_calls_is_left_by_the_pair(void **state) {
	struct scene *s = *state;
	calls_5(s, 2);
	scene_advance(s, 2 * S);
	assert_false(s->is_connected[1]);
	scene_advance(s, 2 * S);
	is_called_at_the_second(s);
	assert_int_equal(reach_core_relay(s->core), 1); /* the home stays */
}

static void a_relay_that_forwards_nothing_is_left_by_the_pair(void **state) {
	struct scene *s = *state;
	calls_5(s, 2);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_rings(s, 0, 5);
	scene_advance(s, 6 * S);
	is_called_at_the_second(s);
}

static void a_relay_without_budget_is_left_by_the_pair(void **state) {
	struct scene *s = *state;
	calls_5(s, 2);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_refuses(s, 0, 5, WAY_FORWARD, RELAY_REFUSE_BUDGET, 3600 * 1000);
	is_called_at_the_second(s);
}

/* Both ends find the first relay useless, at about the same time: they wait at the second for each
 * other. */
static void a_pair_goes_round_the_relays_once_for_a_wish(void **state) {
	struct scene *s = *state;
	calls_5(s, 2);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, 0);
	scene_comes_up(s, 1);
	scene_reflects_all(s, 1);
	scene_gets_tickets(s);
	scene_refuses(s, 1, 5, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, 0);
	s->asks = 0;
	scene_advance(s, 5 * S);
	assert_int_equal(s->asks, 0);
	assert_true(s->is_connected[1]); /* where the other may come */
	wants(s, 5);
	assert_int_equal(s->asks, 1);
	scene_gets_tickets(s);
	assert_int_equal(s->sent_by[s->sent - 1], 0); /* the first one again */
}

static void a_station_that_is_lost_in_a_call_ends_the_call(void **state) {
	struct scene *s = *state;
	calls_5(s, 2);
	s->is_connected[0] = false;
	reach_core_lost(s->core, s->now_us, 0, "connection reset");
	assert_true(s->is_connected[1]);
	assert_string_equal(s->at[1].addr, "10.0.0.2:7435");
}

/* ---- what a lying relay reaches ---- */

static void few_openings_lead_to_hosts_that_are_nobodys(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	reach_core_set_reach(s->core, ADDRESS_PUBLIC);
	for (int i = 0; i < 600; i++) { /* ten minutes */
		scene_opens(s, 0, 8 + (uint32_t)i % 40, "198.51.100.1", (uint16_t)(i + 1));
		if (i % 10 == 9)
			scene_pongs(s);
		scene_advance(s, 1 * S);
	}
	assert_in_range(s->offers, 8, 8 + 600 / 30);
	int before = s->offers;
	scene_opens(s, 0, 5, "192.0.2.5", 7434); /* the peer's own host is no stranger's */
	assert_int_equal(s->offers, before + 1);
}

static void openings_of_one_peer_are_bounded(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	for (int i = 0; i < 100; i++)
		scene_opens(s, 0, 5, "192.0.2.5", 7434);
	assert_int_equal(s->offers, 4);
}

static void narrow_addresses_are_not_opened(void **state) {
	static const char *const hosts[] = {"127.0.0.1", "10.0.0.9", "169.254.1.1", "224.0.0.1", "255.255.255.255", "::1"};
	struct scene *s = *state;
	scene_is_home(s, 1);
	reach_core_set_reach(s->core, ADDRESS_PUBLIC);
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
		char addr[NET_ADDR_BYTES];
		(void)snprintf(addr, sizeof addr, strchr(hosts[i], ':') ? "[%s]:7434" : "%s:7434", hosts[i]);
		s->doc.n_members = 0;
		scene_add_member(s, 5, 1, addr);
		scene_opens(s, 0, 5, hosts[i], 7434);
		scene_advance(s, 10 * S);
		scene_pongs(s);
	}
	assert_int_equal(s->offers, 0);
}

/* An answer that may not be used is as good as none: the next way is called. */
static void a_call_whose_opening_may_not_be_used_goes_on(void **state) {
	struct scene *s = *state;
	calls_5(s, 1);
	reach_core_set_reach(s->core, ADDRESS_PUBLIC);
	scene_opens(s, 0, 5, "127.0.0.1", 7434);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_wish_becomes_a_ticket_and_a_call),
		SCENE_TEST(a_wish_waits_for_the_station_and_its_mapping),
		SCENE_TEST(a_reflection_that_does_not_answer_is_not_waited_for),
		SCENE_TEST(nothing_is_due_while_tickets_are_awaited),
		SCENE_TEST(an_opening_becomes_a_punch_at_its_moment),
		SCENE_TEST(an_opening_that_brings_no_link_is_followed_by_the_relay),
		SCENE_TEST(a_route_that_the_mesh_does_not_take_is_offered_again),
		SCENE_TEST(a_route_that_the_mesh_never_takes_is_no_fault_of_the_relay),
		SCENE_TEST(the_peers_mapping_is_waited_for_once),
		SCENE_TEST(an_opening_beside_a_link_is_handed_to_the_mesh),
		SCENE_TEST(an_opening_takes_the_place_of_a_wait_at_the_relay),
		SCENE_TEST(an_opening_that_the_mesh_does_not_take_is_followed_by_the_next_way),
		SCENE_TEST(a_refused_opening_is_followed_by_the_relay_at_once),
		SCENE_TEST(ipv6_comes_first_where_both_have_it),
		SCENE_TEST(a_pair_that_has_met_meanwhile_is_not_called),
		SCENE_TEST(calls_of_a_peer_are_taken),
		SCENE_TEST(a_wish_during_the_peers_opening_goes_on_by_itself),
		SCENE_TEST(a_refusal_after_the_peers_call_was_answered_is_ignored),
		SCENE_TEST(a_relayed_pair_opens_once_more_with_other_moments),
		SCENE_TEST(the_mesh_asks_for_upgrades),
		SCENE_TEST(an_opening_for_which_a_relay_has_no_time_comes_later),
		SCENE_TEST(where_both_mappings_are_dependent_nothing_is_tried_again),
		SCENE_TEST(a_new_mapping_is_a_reason_to_open_again),
		SCENE_TEST(a_stale_ticket_is_replaced_twice),
		SCENE_TEST(a_refusal_is_honoured_for_as_long_as_it_says),
		SCENE_TEST(a_relay_that_does_not_answer_calls_is_left_by_the_pair),
		SCENE_TEST(a_relay_that_forwards_nothing_is_left_by_the_pair),
		SCENE_TEST(a_relay_without_budget_is_left_by_the_pair),
		SCENE_TEST(a_pair_goes_round_the_relays_once_for_a_wish),
		SCENE_TEST(a_station_that_is_lost_in_a_call_ends_the_call),
		SCENE_TEST(few_openings_lead_to_hosts_that_are_nobodys),
		SCENE_TEST(openings_of_one_peer_are_bounded),
		SCENE_TEST(narrow_addresses_are_not_opened),
		SCENE_TEST(a_call_whose_opening_may_not_be_used_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
