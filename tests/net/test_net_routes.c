/* Routes that the owner finds: when it is asked for one, links by a relay, and which link of a pair
 * stays (net/mesh/offer.c, net/mesh/socket_route.c). */
#include "pair_world.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BULK_BYTES = 66560 };

static void probe_soon(struct peers_config *cfg, int node) {
	ask_owner(cfg, node);
	cfg->redial_max_us = S;
}

static bool is_down(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].downs[1] > 0 && w->nodes[1].downs[0] > 0;
}

static bool both_had_trouble(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].troubles > 0 && w->nodes[1].troubles > 0;
}

/* ---- the owner is asked ---- */

static void the_owner_is_asked_for_a_route_after_a_second(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	int64_t began_us = w.now_us;
	int lower = lower_of(&w);
	world_advance(&w, 3 * S);
	assert_in_range(asked[lower].at_us[0] - began_us, 1 * S, 1 * S + 300 * MS);
	assert_in_range(asked[1 - lower].at_us[0] - began_us, 1500 * MS, 1500 * MS + 300 * MS);
	for (int i = 0; i < 12; i++)
		world_advance(&w, 10 * S);
	for (int i = 0; i < 2; i++)
		assert_in_range(asked[i].n, 8, 16); /* 1, 2, 4, 8, 15, 15 ... s */
	assert_int_equal(upgrades[0].n + upgrades[1].n, 0);
	assert_int_equal(peers_path(w.nodes[0].peers, 1), PATH_APART);
	pair_end(&w, &r);
}

/* ---- by a relay ---- */

static void a_pair_that_nobody_can_dial_meets_at_a_relay(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	assert_int_equal(path_at(&w, 0), PATH_RELAYED);
	assert_int_equal(path_at(&w, 1), PATH_RELAYED);
	assert_memory_equal(r.shown[0], "RVLRELAY\x02\x07\x07", 11);
	for (int i = 0; i < 2; i++) {
		w.nodes[i].bulk_bytes = BULK_BYTES;
		w.nodes[i].bulk_body = calloc(1, BULK_BYTES);
		assert_non_null(w.nodes[i].bulk_body);
		memcpy(w.nodes[i].bulk_body + 1000, "plain text of a frame", 21);
		w.nodes[i].bulk[1 - i] = 5;
	}
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	assert_false(w.nodes[0].bad_body || w.nodes[1].bad_body || r.saw_the_text);
	const struct peers_traffic all = peers_total(w.nodes[0].peers), relayed = peers_relayed(w.nodes[0].peers);
	assert_true(relayed.tx_bytes > 5 * BULK_BYTES && relayed.tx_bytes == all.tx_bytes);
	assert_int_equal(relayed.rx_bytes, all.rx_bytes);
	pair_end(&w, &r);
}

static void a_relay_that_hangs_up_is_named(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	r.hangs_up = true;
	const struct route route = by_relay(&r, 7);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, both_had_trouble, NULL));
	assert_non_null(strstr(w.nodes[0].trouble_text, "by the relay 127.0.0.1:"));
	assert_non_null(strstr(w.nodes[0].trouble_text, "the relay ended the call"));
	assert_true(ended[0].n == 1 && ended[0].failed == 1 && ended[0].lived_us == -1 && ended[0].port == r.port);
	assert_int_equal(w.nodes[0].fatals[1] + w.nodes[0].downs[1], 0);
	offer_both(&w, &route, true); /* the attempt is over */
	pair_end(&w, &r);
}

static void a_relay_that_answers_something_else_is_named(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	r.answer = 'H';
	const struct route route = by_relay(&r, 7);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, both_had_trouble, NULL));
	assert_non_null(strstr(w.nodes[1].trouble_text, "the relay answers 72, must be 1"));
	pair_end(&w, &r);
}

static void one_that_waits_alone_at_the_relay_gives_up(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route route = by_relay(&r, 7);
	assert_true(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route));
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route)); /* one at a time */
	world_advance(&w, 14 * S);
	assert_int_equal(w.nodes[0].troubles, 0);
	world_advance(&w, 4 * S);
	assert_non_null(strstr(w.nodes[0].trouble_text, "the other side did not come to the relay in time"));
	pair_end(&w, &r);
}

/* Both were called anew, so the other end does not come to the former call. */
static void a_newer_call_takes_the_place_of_one_that_waits(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route former = by_relay(&r, 7), newer = by_relay(&r, 8);
	assert_true(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &former));
	world_advance(&w, 1 * S);
	offer_both(&w, &newer, true);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_int_equal(path_at(&w, 0), PATH_RELAYED);
	assert_int_equal(ended[0].failed, 0);
	pair_end(&w, &r);
}

static void a_relay_that_forwards_nothing_gives_way_to_another(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route former = by_relay(&r, 7), newer = by_relay(&r, 8);
	r.drops = true;
	offer_both(&w, &former, true);
	world_advance(&w, 3 * S);
	offer_both(&w, &newer, false);
	world_advance(&w, 2 * S);
	r.drops = false;
	offer_both(&w, &newer, true);
	assert_true(world_until(&w, world_all_linked, NULL));
	pair_end(&w, &r);
}

static void a_relayed_link_that_breaks_is_asked_for_again_and_accuses_nobody(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	world_advance(&w, 20 * S);
	asked[0].n = asked[1].n = 0;
	relay_cut(&r);
	assert_true(world_until(&w, is_down, NULL));
	world_advance(&w, S / 2);
	assert_int_equal(asked[lower_of(&w)].n, 1); /* at once, for it had been steady */
	for (int i = 0; i < 2; i++) {
		assert_true(ended[i].n == 1 && ended[i].failed == 1 && ended[i].kind == ROUTE_RELAY);
		assert_in_range(ended[i].lived_us, 20 * S, 22 * S);
	}
	assert_int_equal(w.nodes[0].fatals[1] + w.nodes[1].fatals[0], 0);
	const struct route route = by_relay(&r, 8);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_int_equal(w.nodes[0].ups[1], 2);
	pair_end(&w, &r);
}

static void routes_to_strangers_and_to_the_banned_are_not_taken(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route route = by_relay(&r, 7);
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 5, &route));
	peers_ban(w.nodes[0].peers, w.now_us, &(struct banned){1, {1}});
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route));
	pair_end(&w, &r);
}

/* Nobody can dial it, but the relay calls it: while it pauses it does not come. */
static void a_mesh_that_pauses_takes_no_route(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route relay = by_relay(&r, 7), punch = {.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = 1}};
	peers_pause(w.nodes[0].peers, w.now_us, true);
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &punch));
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &relay));
	world_advance(&w, 2 * S);
	assert_int_equal(r.n, 0);
	peers_pause(w.nodes[0].peers, w.now_us, false);
	world_allow_all(&w);
	offer_both(&w, &relay, true);
	assert_true(world_until(&w, world_all_linked, NULL));
	pair_end(&w, &r);
}

/* ---- a direct link beside a relayed one ---- */

static bool is_direct(struct world *w, void *ctx) {
	(void)ctx;
	return world_all_linked(w, NULL) && path_at(w, 0) != PATH_RELAYED && path_at(w, 1) != PATH_RELAYED;
}

static void can_be_dialed_at(struct world *w, int node, unsigned port) {
	struct member_ref *r = &w->nodes[node].ref;
	r->n_candidates = 1;
	snprintf(r->candidates[0].addr, sizeof r->candidates[0].addr, "127.0.0.1:%u", port);
}

static void can_be_dialed_again(struct world *w) {
	for (int i = 0; i < 2; i++)
		can_be_dialed_at(w, i, peers_port(w->nodes[i].peers));
	world_allow_all(w);
}

static void a_direct_link_replaces_a_relayed_one(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, probe_soon);
	can_be_dialed_again(&w);
	assert_true(world_until(&w, is_direct, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(ended[i].n == 1 && ended[i].failed == 0); /* it is not the relay's fault */
		assert_int_equal(w.nodes[i].downs[1 - i], 1);
		assert_int_equal(w.nodes[i].fatals[1 - i], 0);
	}
	const struct route route = by_relay(&r, 8);
	w.nodes[0].pings[1] = w.nodes[1].pings[0] = 1;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	offer_both(&w, &route, false); /* a link that delivers is not given up for a relay */
	pair_end(&w, &r);
}

/* Both ends keep it, whichever of them is still busy. */
static void a_relayed_link_stays_while_paths_are_kept(void **state) {
	(void)state;
	for (unsigned busy = 1; busy <= 3; busy++) {
		struct world w;
		struct relay r;
		link_by_relay(&w, &r, probe_soon);
		for (uint32_t i = 0; i < 2; i++)
			peers_keep_paths(w.nodes[i].peers, busy >> i & 1);
		can_be_dialed_again(&w);
		for (int i = 0; i < 12; i++) { /* something is exchanged all the time */
			w.nodes[0].pings[1] = w.nodes[1].pings[0] = 1;
			world_advance(&w, S / 2);
		}
		assert_int_equal(path_at(&w, 0), PATH_RELAYED);
		assert_int_equal(w.nodes[0].downs[1] + w.nodes[1].downs[0], 0);
		for (uint32_t i = 0; i < 2; i++)
			peers_keep_paths(w.nodes[i].peers, false);
		for (int i = 0; i < 100 && !is_direct(&w, NULL); i++)
			world_advance(&w, S);
		assert_true(is_direct(&w, NULL));
		pair_end(&w, &r);
	}
}

/* An address that refuses, beside a link that works: 15, 30, 60 ... 300 s between dials. */
static void an_address_beside_a_relayed_link_is_seldom_dialed(void **state) {
	(void)state;
	struct world w;
	struct relay r, stranger;
	link_by_relay(&w, &r, ask_owner);
	relay_open(&w, &stranger);
	stranger.hangs_up = true;
	can_be_dialed_at(&w, 1, stranger.port);
	world_allow_all(&w);
	for (int i = 0; i < 30; i++)
		world_advance(&w, 120 * S);
	assert_in_range(stranger.n, 5, 16);
	assert_int_equal(w.nodes[0].downs[1], 0);
	relay_release(&stranger);
	pair_end(&w, &r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_is_asked_for_a_route_after_a_second),
		cmocka_unit_test(a_pair_that_nobody_can_dial_meets_at_a_relay),
		cmocka_unit_test(a_relay_that_hangs_up_is_named),
		cmocka_unit_test(a_relay_that_answers_something_else_is_named),
		cmocka_unit_test(one_that_waits_alone_at_the_relay_gives_up),
		cmocka_unit_test(a_newer_call_takes_the_place_of_one_that_waits),
		cmocka_unit_test(a_relay_that_forwards_nothing_gives_way_to_another),
		cmocka_unit_test(a_relayed_link_that_breaks_is_asked_for_again_and_accuses_nobody),
		cmocka_unit_test(routes_to_strangers_and_to_the_banned_are_not_taken),
		cmocka_unit_test(a_mesh_that_pauses_takes_no_route),
		cmocka_unit_test(a_direct_link_replaces_a_relayed_one),
		cmocka_unit_test(a_relayed_link_stays_while_paths_are_kept),
		cmocka_unit_test(an_address_beside_a_relayed_link_is_seldom_dialed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
