/* test_worker_reach_relays.c: relays that answer and yet connect nobody are left
 * (worker/reach/core_relays.c). */
#include "tests/worker/reach_scene.h"

#include <string.h>

/* The peer, at the same relay, is called by the relay alone: it has no mapping. */
static void rings_for_5(struct scene *s, int station) {
	scene_called(s, 5, WAY_OPEN_V4);
	scene_refuses(s, station, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s);
	scene_called(s, 5, WAY_FORWARD);
	scene_rings(s, station, 5);
}

static void wants_5(struct scene *s) {
	reach_core_want(s->core, s->now_us, 5, false);
	if (s->asked != 0)
		scene_gets_tickets(s);
}

static void begins(struct scene *s, int n_relays) {
	scene_is_home(s, n_relays);
	scene_add_member(s, 5, 1, "192.0.2.5:7434");
	wants_5(s);
}

static void passes(struct scene *s, int seconds) {
	for (int i = 0; i < seconds; i++) {
		scene_advance(s, 1 * S);
		scene_pongs(s);
	}
}

static void has_link_for(struct scene *s, int seconds, bool fails) {
	s->paths[5] = PATH_RELAYED;
	passes(s, seconds);
	s->paths[5] = PATH_APART;
	reach_core_relay_ended(s->core, s->now_us, 5, seconds * (int64_t)S, fails);
}

/* One that drops what it should forward. */
static void two_calls_without_a_link_make_a_relay_bad(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	rings_for_5(s, 0);
	passes(s, 6);
	assert_int_equal(s->bads, 0); /* that may be the peer's fault: the pair alone goes on */
	scene_comes_up(s, 1);
	scene_reflects_all(s, 1);
	scene_gets_tickets(s);
	scene_refuses(s, 1, 5, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, 0);
	wants_5(s);
	assert_int_equal(s->sent_by[s->sent - 1], 0);
	rings_for_5(s, 0);
	passes(s, 6);
	assert_int_equal(s->bads, 1);
	assert_int_equal(reach_core_relay(s->core), 2); /* the guest was there: it is the home now */
	assert_false(s->is_connected[0]);
}

/* The pair is called at the second relay, where the peer is not yet. */
static void goes_to_the_second_in_vain(struct scene *s, uint32_t member) {
	if (s->asked == 0) {
		scene_comes_up(s, 1);
		scene_reflects_all(s, 1);
	}
	scene_gets_tickets(s);
	assert_int_equal(s->sent_by[s->sent - 1], 1);
	scene_refuses(s, 1, member, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, 0);
}

/* Its link was cut soon: it goes round, and is at the first again. */
static void comes_back(struct scene *s) {
	reach_core_want(s->core, s->now_us, 5, false);
	goes_to_the_second_in_vain(s, 5);
	scene_gets_tickets(s);
	assert_int_equal(s->sent_by[s->sent - 1], 0);
}

/* One that cuts each link after some seconds. */
static void links_that_are_cut_soon_make_a_relay_bad(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	rings_for_5(s, 0);
	has_link_for(s, 10, true);
	assert_int_equal(s->bads, 0);
	comes_back(s);
	rings_for_5(s, 0);
	has_link_for(s, 10, true);
	assert_int_equal(s->bads, 1);
}

static void the_only_relay_is_never_bad(void **state) {
	struct scene *s = *state;
	begins(s, 1);
	for (int i = 0; i < 5; i++) {
		rings_for_5(s, 0);
		has_link_for(s, 10, true);
		wants_5(s);
	}
	assert_int_equal(s->bads, 0);
}

static void a_link_that_lived_speaks_for_its_relay(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	for (int i = 0; i < 3; i++) {
		rings_for_5(s, 0);
		has_link_for(s, 10, true);
		comes_back(s);
		rings_for_5(s, 0);
		has_link_for(s, 40, true);
		wants_5(s);
		assert_int_equal(s->sent_by[s->sent - 1], 0);
	}
	assert_int_equal(s->bads, 0);
}

/* The other side said BYE, or this one has another network: no relay cut it. */
static void a_link_that_was_ended_says_nothing_of_its_relay(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	for (int i = 0; i < 6; i++) {
		rings_for_5(s, 0);
		has_link_for(s, 10, false);
		wants_5(s);
	}
	assert_int_equal(s->bads, 0);
}

/* The mesh knows sooner than the clock that an attempt is over. */
static void an_attempt_that_fails_is_followed_by_the_next_relay_at_once(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	rings_for_5(s, 0);
	scene_advance(s, 1 * S);
	reach_core_relay_ended(s->core, s->now_us, 5, -1, true);
	assert_true(s->is_connected[1]);
	assert_string_equal(s->at[1].addr, "10.0.0.2:7435");
}

/* A member that never comes to its calls costs nobody a relay through which others are linked. */
static void a_relay_that_links_another_pair_is_good(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	rings_for_5(s, 0);
	s->paths[5] = PATH_RELAYED;
	passes(s, 14);
	scene_gets_tickets(s); /* for the opening beside the link */
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_DEPENDENT, 0);
	passes(s, 40);
	for (int i = 0; i < 5; i++) {
		reach_core_want(s->core, s->now_us, 6, false);
		scene_gets_tickets(s);
		assert_int_equal(s->sent_by[s->sent - 1], 0);
		scene_rings(s, 0, 6);
		passes(s, 6);
		goes_to_the_second_in_vain(s, 6);
	}
	assert_int_equal(s->bads, 0);
}

/* The home changes without a moment without one. */
static void a_bad_home_is_left_when_the_next_is_up(void **state) {
	struct scene *s = *state;
	const struct relay_frame wrong = {.type = RELAY_PONG, .number = 99};
	begins(s, 3);
	scene_gets(s, 0, &wrong, RV_E_PROTOCOL);
	assert_int_equal(s->bads, 1);
	scene_comes_up(s, 0); /* at once, at the next */
	assert_string_equal(s->at[0].addr, "10.0.0.2:7435");
	scene_reflects_all(s, 0);
	assert_int_equal(reach_core_relay(s->core), 2);
}

static void where_all_are_bad_the_least_bad_is_used(void **state) {
	struct scene *s = *state;
	const struct relay_frame wrong = {.type = RELAY_PONG, .number = 99};
	scene_is_home(s, 2);
	for (int i = 0; i < 6; i++) {
		scene_gets(s, 0, &wrong, RV_E_PROTOCOL);
		for (int k = 0; k < 100 && !s->is_connected[0]; k++)
			scene_advance(s, S);
		assert_string_equal(s->at[0].addr, i % 2 == 0 ? "10.0.0.2:7435" : "10.0.0.1:7435");
		scene_comes_up(s, 0);
	}
	assert_int_equal(s->bads, 6);
}

/* A peer whose home is at a bad relay is called at the own one first. */
static void bad_relays_are_called_last(void **state) {
	struct scene *s = *state;
	const struct relay_frame wrong = {.type = RELAY_PONG, .number = 99};
	begins(s, 2);
	scene_gets(s, 0, &wrong, RV_E_PROTOCOL);
	scene_comes_up(s, 0);
	scene_reflects_all(s, 0);
	s->asks = 0;
	passes(s, 5);
	wants_5(s);
	assert_false(s->is_connected[1]);
	scene_called(s, 5, WAY_OPEN_V4);
	assert_string_equal(s->at[0].addr, "10.0.0.2:7435");
}

static void the_own_relay_is_left_out(void **state) {
	struct scene *s = *state;
	s->doc.n_relays = 2;
	s->doc.relays[0] = (struct relay_ref){.key = {SCENE_KEY}, .addr = "192.0.2.7:7435"};
	s->doc.relays[1] = (struct relay_ref){.key = {2}, .addr = "10.0.0.2:7435"};
	reach_core_follow(s->core, s->now_us, &s->doc);
	scene_comes_up(s, 0);
	assert_string_equal(s->at[0].addr, "10.0.0.2:7435");
	scene_reflects_all(s, 0);
	assert_int_equal(reach_core_relay(s->core), 2); /* places are the document's */
	scene_add_member(s, 5, 1, "192.0.2.5:7434");    /* its home is there */
	wants_5(s);
	assert_false(s->is_connected[1]);
	scene_called(s, 5, WAY_OPEN_V4);
	for (int i = 0; i < 4; i++) {
		s->is_connected[0] = false;
		reach_core_lost(s->core, s->now_us, 0, "closed");
		scene_comes_up(s, 0);
		assert_string_equal(s->at[0].addr, "10.0.0.2:7435");
	}
}

static void the_own_relay_alone_is_tried_without_an_event(void **state) {
	struct scene *s = *state;
	s->doc.n_relays = 1;
	s->doc.relays[0] = (struct relay_ref){.key = {SCENE_KEY}, .addr = "192.0.2.7:7435"};
	reach_core_follow(s->core, s->now_us, &s->doc);
	scene_advance(s, 600 * S); /* it does not answer */
	assert_true(s->connects > 3);
	assert_int_equal(s->downs, 0);
}

/* A relay that comes to the list, or leaves it, is no matter of pairs that meet elsewhere. */
static void another_list_leaves_pairs_at_other_relays_alone(void **state) {
	struct scene *s = *state;
	begins(s, 2);
	scene_called(s, 5, WAY_OPEN_V4);
	scene_list_relays(s, 3);
	scene_refuses(s, 0, 5, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, 0);
	scene_gets_tickets(s); /* goes on */
	scene_called(s, 5, WAY_FORWARD);
	for (int i = 0; i + 1 < s->doc.n_relays; i++)
		s->doc.relays[i] = s->doc.relays[i + 1];
	s->doc.n_relays--;
	reach_core_follow(s->core, s->now_us, &s->doc); /* without the one where they meet */
	s->asks = 0;
	passes(s, 20);
	assert_int_equal(s->asks, 0);
	assert_int_equal(s->bads, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		SCENE_TEST(two_calls_without_a_link_make_a_relay_bad),
		SCENE_TEST(links_that_are_cut_soon_make_a_relay_bad),
		SCENE_TEST(the_only_relay_is_never_bad),
		SCENE_TEST(a_link_that_lived_speaks_for_its_relay),
		SCENE_TEST(a_link_that_was_ended_says_nothing_of_its_relay),
		SCENE_TEST(an_attempt_that_fails_is_followed_by_the_next_relay_at_once),
		SCENE_TEST(a_relay_that_links_another_pair_is_good),
		SCENE_TEST(a_bad_home_is_left_when_the_next_is_up),
		SCENE_TEST(where_all_are_bad_the_least_bad_is_used),
		SCENE_TEST(bad_relays_are_called_last),
		SCENE_TEST(the_own_relay_is_left_out),
		SCENE_TEST(the_own_relay_alone_is_tried_without_an_event),
		SCENE_TEST(another_list_leaves_pairs_at_other_relays_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
