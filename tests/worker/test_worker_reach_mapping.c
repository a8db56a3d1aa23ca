/* test_worker_reach_mapping.c: reflections of a worker, and what it learns of its router
 * (worker/reach/core_mapping.c). */
#include "tests/worker/reach_scene.h"

#include <stdio.h>
#include <string.h>

static struct asked_reflection *of(struct scene *s, int station, enum reach_family family, enum reach_port port) {
	const struct reach_reflection w = {(uint8_t)station, (uint8_t)family, (uint8_t)port};
	return &s->reflections[reach_reflection_index(&w)];
}

static void loses(struct scene *s, enum reach_family family, enum reach_port port) {
	const struct reach_reflection w = {0, (uint8_t)family, (uint8_t)port};
	of(s, 0, family, port)->is_asked = false;
	reach_core_reflection_lost(s->core, s->now_us, &w);
}

static void names_the_relay(struct scene *s, const char *addr) {
	s->doc.n_relays = 1;
	s->doc.relays[0] = (struct relay_ref){.key = {1}};
	(void)snprintf(s->doc.relays[0].addr, NET_ADDR_BYTES, "%s", addr);
	reach_core_follow(s->core, s->now_us, &s->doc);
}

/* ---- what is asked ---- */

static void a_station_asks_at_both_ports_with_its_token(void **state) {
	struct scene *s = *state;
	names_the_relay(s, "relay.example:7435");
	scene_comes_up(s, 0);
	for (int family = 0; family < REACH_FAMILIES; family++) { /* a name may have addresses of both */
		const struct asked_reflection *main = of(s, 0, (enum reach_family)family, REACH_MAIN_PORT);
		const struct asked_reflection *second = of(s, 0, (enum reach_family)family, REACH_SECOND_PORT);
		assert_true(main->is_asked && second->is_asked);
		assert_int_equal(main->port, 7435);
		assert_int_equal(second->port, 7436);
		assert_int_equal(main->token[0], 42);
	}
}

static void a_numeric_relay_is_asked_by_its_own_family(void **state) {
	struct scene *s = *state;
	names_the_relay(s, "[2001:db8::1]:7435");
	scene_comes_up(s, 0);
	assert_false(of(s, 0, REACH_V4, REACH_MAIN_PORT)->is_asked);
	assert_true(of(s, 0, REACH_V6, REACH_MAIN_PORT)->is_asked);
}

/* Entries of one key are one relay: its other address is asked for the other family. */
static void the_other_address_of_a_relay_is_asked_by_the_other_family(void **state) {
	struct scene *s = *state;
	s->doc.n_relays = 2;
	s->doc.relays[0] = (struct relay_ref){.key = {1}, .addr = "10.0.0.1:7435"};
	s->doc.relays[1] = (struct relay_ref){.key = {1}, .addr = "[2001:db8::1]:7437"};
	reach_core_follow(s->core, s->now_us, &s->doc);
	scene_comes_up(s, 0);
	assert_string_equal(of(s, 0, REACH_V4, REACH_MAIN_PORT)->relay, "10.0.0.1:7435");
	assert_string_equal(of(s, 0, REACH_V6, REACH_MAIN_PORT)->relay, "[2001:db8::1]:7437");
	assert_int_equal(of(s, 0, REACH_V6, REACH_MAIN_PORT)->port, 7437);
}

static void a_lost_reflection_is_made_again_after_pauses_that_double(void **state) {
	struct scene *s = *state;
	struct asked_reflection *main = of(s, 0, REACH_V4, REACH_MAIN_PORT);
	scene_is_home(s, 1);
	for (int i = 0; i < 200; i++) {
		scene_advance(s, 5 * S);
		scene_pongs(s);
		if (main->is_asked)
			loses(s, REACH_V4, REACH_MAIN_PORT);
	}
	assert_in_range(main->n, 8, 16); /* of 1,000 s; the longest pause is 300 s */
}

static void one_that_was_open_for_long_is_made_again_soon(void **state) {
	struct scene *s = *state;
	struct asked_reflection *main = of(s, 0, REACH_V4, REACH_MAIN_PORT);
	scene_is_home(s, 1);
	for (int round = 2; round < 8; round++) {
		for (int i = 0; i < 7; i++) {
			scene_advance(s, 10 * S);
			scene_pongs(s);
		}
		loses(s, REACH_V4, REACH_MAIN_PORT);
		scene_advance(s, 2 * S);
		assert_int_equal(main->n, round);
		scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.7", 7434);
	}
}

static void reflections_end_with_their_station(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	s->is_connected[0] = false;
	reach_core_lost(s->core, s->now_us, 0, "connection reset");
	for (int i = 0; i < REACH_REFLECTIONS; i++)
		assert_false(s->reflections[i].is_asked);
	scene_comes_up(s, 0);
	assert_int_equal(of(s, 0, REACH_V4, REACH_MAIN_PORT)->n, 2);
}

static void a_change_of_the_network_makes_them_anew_once(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	for (int i = 0; i < 10; i++) /* addresses come in groups */
		reach_core_hurry(s->core, s->now_us);
	assert_int_equal(of(s, 0, REACH_V4, REACH_MAIN_PORT)->n, 2);
}

/* ---- what is learnt ---- */

static void two_ports_tell_the_kind_of_the_mapping(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	scene_comes_up(s, 0);
	scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.7", 7434);
	assert_int_equal(s->mappings, 0); /* the other answer is on its way */
	scene_reflects(s, 0, REACH_V4, REACH_SECOND_PORT, "192.0.2.7", 7434);
	assert_int_equal(s->mappings, 1);
	assert_int_equal(s->mapping.kind, REACH_MAPPING_INDEPENDENT);
	assert_int_equal(reach_core_mapping(s->core, REACH_V4)->at.port, 7434);
	assert_int_equal(reach_core_mapping(s->core, REACH_V6)->at.port, 0);
}

static void another_port_for_another_destination_is_dependent(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	scene_comes_up(s, 0);
	scene_reflects(s, 0, REACH_V4, REACH_SECOND_PORT, "192.0.2.7", 40001);
	scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.7", 40000);
	assert_int_equal(s->mappings, 1);
	assert_int_equal(s->mapping.kind, REACH_MAPPING_DEPENDENT);
	assert_int_equal(s->mapping.at.port, 40000);
}

static void without_a_second_port_the_kind_is_not_known(void **state) {
	struct scene *s = *state;
	s->no_second_port = true;
	scene_list_relays(s, 1);
	scene_comes_up(s, 0);
	assert_false(of(s, 0, REACH_V4, REACH_SECOND_PORT)->is_asked);
	scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.7", 7434);
	assert_int_equal(s->mapping.kind, REACH_MAPPING_UNKNOWN);
	assert_int_equal(s->mappings, 1);
}

static void a_second_port_that_fails_later_changes_nothing(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	assert_int_equal(s->mappings, 1);
	loses(s, REACH_V4, REACH_SECOND_PORT);
	assert_int_equal(s->mappings, 1);
	assert_int_equal(reach_core_mapping(s->core, REACH_V4)->kind, REACH_MAPPING_INDEPENDENT);
}

static void a_mapping_that_moves_is_told(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	reach_core_hurry(s->core, s->now_us);
	scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.99", 7434);
	scene_reflects(s, 0, REACH_V4, REACH_SECOND_PORT, "192.0.2.99", 7434);
	assert_int_equal(s->mappings, 2);
	assert_string_equal(s->mapping.at.host, "192.0.2.99");
}

/* ---- proofs ---- */

static const struct relay_frame proof = {
	.type = RELAY_PROOF, .proof = {.at = {.host = "192.0.2.7", .port = 7434}, .unix_s = 77, .signature = {5}}};

static void a_proof_makes_a_candidate(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 2);
	assert_null(reach_core_proof(s->core, REACH_V4));
	scene_gets(s, 0, &proof, RV_OK);
	const struct reach_proof *p = reach_core_proof(s->core, REACH_V4);
	assert_non_null(p);
	assert_int_equal(p->relay, 1);
	assert_int_equal(p->unix_s, 77);
	assert_int_equal(p->signature[0], 5);
	assert_string_equal(p->at.host, "192.0.2.7");
	assert_null(reach_core_proof(s->core, REACH_V6));
	const struct relay_ref first = s->doc.relays[0]; /* it goes with its relay */
	s->doc.relays[0] = s->doc.relays[1];
	s->doc.relays[1] = first;
	reach_core_follow(s->core, s->now_us, &s->doc);
	assert_int_equal(reach_core_proof(s->core, REACH_V4)->relay, 2);
	s->doc.n_relays = 1;
	reach_core_follow(s->core, s->now_us, &s->doc);
	assert_null(reach_core_proof(s->core, REACH_V4));
}

/* Others that dial it would come to another port, or to nobody. */
static void a_dependent_mapping_is_no_candidate(void **state) {
	struct scene *s = *state;
	scene_list_relays(s, 1);
	scene_comes_up(s, 0);
	scene_gets(s, 0, &proof, RV_OK);
	scene_reflects(s, 0, REACH_V4, REACH_MAIN_PORT, "192.0.2.7", 7434);
	scene_reflects(s, 0, REACH_V4, REACH_SECOND_PORT, "192.0.2.7", 7999);
	assert_null(reach_core_proof(s->core, REACH_V4));
}

static void a_mapping_that_is_no_longer_kept_is_no_candidate(void **state) {
	struct scene *s = *state;
	scene_is_home(s, 1);
	scene_gets(s, 0, &proof, RV_OK);
	loses(s, REACH_V4, REACH_MAIN_PORT);
	assert_non_null(reach_core_proof(s->core, REACH_V4)); /* it is made again at once */
	scene_advance(s, 2 * S);
	loses(s, REACH_V4, REACH_MAIN_PORT);
	assert_null(reach_core_proof(s->core, REACH_V4));
	assert_int_equal(reach_core_mapping(s->core, REACH_V4)->at.port, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_station_asks_at_both_ports_with_its_token),
		SCENE_TEST(a_numeric_relay_is_asked_by_its_own_family),
		SCENE_TEST(the_other_address_of_a_relay_is_asked_by_the_other_family),
		SCENE_TEST(a_lost_reflection_is_made_again_after_pauses_that_double),
		SCENE_TEST(one_that_was_open_for_long_is_made_again_soon),
		SCENE_TEST(reflections_end_with_their_station),
		SCENE_TEST(a_change_of_the_network_makes_them_anew_once),
		SCENE_TEST(two_ports_tell_the_kind_of_the_mapping),
		SCENE_TEST(another_port_for_another_destination_is_dependent),
		SCENE_TEST(without_a_second_port_the_kind_is_not_known),
		SCENE_TEST(a_second_port_that_fails_later_changes_nothing),
		SCENE_TEST(a_mapping_that_moves_is_told),
		SCENE_TEST(a_proof_makes_a_candidate),
		SCENE_TEST(a_dependent_mapping_is_no_candidate),
		SCENE_TEST(a_mapping_that_is_no_longer_kept_is_no_candidate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
