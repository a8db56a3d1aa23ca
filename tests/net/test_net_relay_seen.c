/* test_net_relay_seen.c: where a relay sees its members: reflections that it keeps, proofs, and
 * openings: who dials whom at which moment, and whom the relay does not aim at anybody. */
#include "tests/net/relay_rig.h"

#include "base/clock.h"
#include "tests/common/check.h"

#include <string.h>

static const uint8_t no_station[NET_TOKEN_BYTES] = {1, 2, 3};

static const struct relay_totals *totals(const struct relay_rig *r) {
	return relay_core_totals(r->core);
}

/* Returns the first frame of this type that was sent to the connection; NULL: none was. */
static const struct relay_frame *sent_to(const struct relay_rig *r, int connection, enum relay_frame_type type) {
	for (int i = 0; i < r->n_sent; i++)
		if (r->sent[i].connection == connection && r->sent[i].frame.type == type)
			return &r->sent[i].frame;
	return NULL;
}

/* Gives members 0 and 1 stations, and reflections of each at both ports; 40000: the mapping of
 * member 0, 41000: of member 1. */
static void open_pair(struct relay_rig *r, const char *host0, const char *host1) {
	rig_init(r, 0, 0);
	rig_stations(r, 2);
	for (int port = 0; port < RELAY_PORTS; port++) {
		(void)rig_reflect(r, host0, 40000, (enum relay_port)port, r->token[0]);
		(void)rig_reflect(r, host1, 41000, (enum relay_port)port, r->token[1]);
	}
	assert_int_equal(r->n_closed, 0);
	rig_clear(r);
}

/* ---- reflections ---- */

static void a_stranger_gets_an_answer_and_is_closed(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	for (int port = 0; port < RELAY_PORTS; port++) {
		rig_clear(&r);
		int connection = rig_reflect(&r, "2001:db8::7", 40000, (enum relay_port)port, no_station);
		const struct relay_frame *seen = sent_to(&r, connection, RELAY_SEEN);
		assert_non_null(seen);
		assert_string_equal(seen->seen.at.host, "2001:db8::7");
		assert_int_equal(seen->seen.at.port, 40000);
		assert_int_equal(seen->seen.second_port, RIG_SECOND_PORT);
		assert_memory_equal(seen->seen.nonce, no_station, NET_TOKEN_BYTES);
		assert_int_equal(r.n_sent, 1); /* no PROOF */
		assert_true(rig_was_closed(&r, connection));
	}
	rig_release(&r);
}

static void a_stations_token_is_its_own(void **state) {
	(void)state;
	struct relay_rig r;
	uint8_t former[NET_TOKEN_BYTES];
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_memory_not_equal(r.token[0], r.token[1], NET_TOKEN_BYTES);
	memcpy(former, r.token[0], sizeof former);
	int kept = rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	rig_stations(&r, 0);
	int again = rig_hello(&r, 0, &r.run, 0); /* the former station ends, and its reflection with it */
	assert_true(rig_was_closed(&r, r.station[0]) && rig_was_closed(&r, kept));
	assert_memory_not_equal(sent_to(&r, again, RELAY_SEEN)->seen.nonce, former, NET_TOKEN_BYTES);
	assert_int_equal(sent_to(&r, again, RELAY_SEEN)->seen.second_port, RIG_SECOND_PORT);
	rig_clear(&r);
	int late = rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, former);
	assert_true(rig_was_closed(&r, late));
	rig_release(&r);
}

static void a_reflection_stays_until_a_newer_one_or_its_stations_end(void **state) {
	(void)state;
	struct relay_rig r;
	int kept[RELAY_PORTS][2];
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	for (int port = 0; port < RELAY_PORTS; port++) {
		kept[port][0] = rig_reflect(&r, "198.51.100.1", 40000, (enum relay_port)port, r.token[0]);
		kept[port][1] = rig_reflect(&r, "2001:db8::1", 40000, (enum relay_port)port, r.token[0]);
	}
	rig_pass_ms(&r, NET_RELAY_IDLE_MS - RELAY_TICK_MS); /* no stranger's deadline */
	assert_int_equal(r.n_closed, 0);
	int newer = rig_reflect(&r, "198.51.100.2", 40001, RELAY_SECOND_PORT, r.token[0]);
	assert_int_equal(r.n_closed, 1);
	assert_true(rig_was_closed(&r, kept[RELAY_SECOND_PORT][0]));
	relay_take_frame(r.core, r.now_us, r.station[0], &(struct relay_frame){.type = RELAY_LEAVE});
	rig_drain(&r);
	assert_int_equal(r.n_closed, 1 + 1 + RELAY_REFLECTIONS);
	assert_true(rig_was_closed(&r, newer) && rig_was_closed(&r, kept[RELAY_MAIN_PORT][1]));
	assert_int_equal(totals(&r)->stations_now, 0);
	rig_release(&r);
}

static void the_second_port_takes_reflections_only(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call(&r, 0, 1, 5), RELAY_RING);
	struct relay_preamble p = {.kind = RELAY_DATA};
	memcpy(p.token, r.sent[0].frame.ring.token, NET_TOKEN_BYTES);
	int connection = relay_accept(r.core, r.now_us, &(struct address){"192.0.2.2", 1}, RELAY_SECOND_PORT);
	relay_take_preamble(r.core, r.now_us, connection, &p);
	rig_drain(&r);
	assert_true(rig_was_closed(&r, connection));
	rig_release(&r);
}

static void reflections_have_a_pace(void **state) {
	(void)state;
	struct relay_rig r;
	enum { AT_ONCE = 16 };
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	int kept = -1;
	for (int i = 0; i < AT_ONCE; i++)
		kept = rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	assert_int_equal(r.n_closed, AT_ONCE - 1);
	rig_clear(&r);
	int refused = rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	assert_int_equal(r.n_sent, 0);
	assert_true(rig_was_closed(&r, refused) && !rig_was_closed(&r, kept));
	rig_pass_ms(&r, 5000);
	rig_clear(&r);
	int later = rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	assert_true(rig_was_closed(&r, kept) && !rig_was_closed(&r, later));
	rig_release(&r);
}

/* ---- proofs ---- */

static void assert_proof(const struct relay_rig *r, const struct relay_frame *f, const char *text) {
	assert_non_null(f);
	const struct relay_proof *p = &f->proof;
	char at[NET_ADDR_BYTES];
	assert_true(address_format(&p->at, at));
	assert_string_equal(at, text);
	assert_true(p->unix_s == r->unix_s);
	assert_true(seen_verify(r->relay.key, r->run_id, r->members[0].key, text, p->unix_s, p->signature));
	assert_false(seen_verify(r->relay.key, r->run_id, r->members[1].key, text, p->unix_s, p->signature));
}

static void a_reflection_at_the_main_port_is_proven(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	(void)rig_reflect(&r, "198.51.100.1", 40000, RELAY_SECOND_PORT, r.token[0]);
	assert_null(sent_to(&r, r.station[0], RELAY_PROOF));
	(void)rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	assert_proof(&r, sent_to(&r, r.station[0], RELAY_PROOF), "198.51.100.1:40000");
	rig_clear(&r);
	(void)rig_reflect(&r, "2001:db8::1", 40002, RELAY_MAIN_PORT, r.token[0]);
	assert_proof(&r, sent_to(&r, r.station[0], RELAY_PROOF), "[2001:db8::1]:40002");
	rig_release(&r);
}

static void ping(struct relay_rig *r) {
	relay_take_frame(r->core, r->now_us, r->station[0], &(struct relay_frame){.type = RELAY_PING});
	rig_drain(r);
}

static void a_proof_is_renewed_while_the_reflection_is_open(void **state) {
	(void)state;
	struct relay_rig r;
	enum { RENEWED_MIN = 360 };
	rig_init(&r, 0, 0);
	rig_stations(&r, 1);
	int kept = rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	for (int min = 1; min < RENEWED_MIN; min++) {
		rig_clear(&r);
		r.now_us += INT64_C(60) * RV_US_PER_S - RV_US_PER_MS;
		ping(&r);
		relay_tick(r.core, r.now_us);
		rig_drain(&r);
		assert_null(sent_to(&r, r.station[0], RELAY_PROOF));
	}
	r.unix_s += UINT64_C(60) * RENEWED_MIN;
	r.now_us += INT64_C(120) * RV_US_PER_S;
	ping(&r);
	rig_clear(&r);
	relay_tick(r.core, r.now_us);
	rig_drain(&r);
	assert_proof(&r, sent_to(&r, r.station[0], RELAY_PROOF), "198.51.100.1:40000");
	assert_int_equal(r.n_sent, 1);
	relay_closed(r.core, kept);
	rig_clear(&r);
	r.now_us += INT64_C(7) * 3600 * RV_US_PER_S;
	ping(&r);
	relay_tick(r.core, r.now_us);
	rig_drain(&r);
	assert_null(sent_to(&r, r.station[0], RELAY_PROOF));
	rig_release(&r);
}

/* ---- openings ---- */

static const struct relay_open *open_of(const struct relay_rig *r, int member) {
	const struct relay_frame *f = sent_to(r, r->station[member], RELAY_OPEN);
	assert_non_null(f);
	return &f->open;
}

static void assert_refused(const struct relay_rig *r, enum relay_way way, enum relay_refusal why, int whose) {
	assert_int_equal(r->n_sent, 1);
	const struct relay_frame *f = &r->sent[0].frame;
	assert_int_equal(f->type, RELAY_REFUSED);
	assert_int_equal(f->refused.reason, why);
	assert_int_equal(f->refused.way, way);
	assert_int_equal(f->refused.whose, whose);
}

static void both_ends_dial_the_others_mapping_at_one_moment(void **state) {
	(void)state;
	static const struct {
		uint32_t rtt[2], delay[2];
	} cases[] = {{{20000, 100000}, {60000, 20000}}, /* 50 + 20 ms, less half of each round trip */
				 {{80000, 80000}, {20000, 20000}},
				 {{0, 7000}, {23500, 20000}},
				 {{0, UINT32_MAX}, {2520000, 20000}}}; /* 5 s at most */
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct relay_rig r;
		open_pair(&r, "198.51.100.1", "203.0.113.1");
		memcpy(r.rtt_us, cases[i].rtt, sizeof cases[i].rtt);
		assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_OPEN);
		assert_int_equal(r.n_sent, 2);
		const struct relay_open *to0 = open_of(&r, 0), *to1 = open_of(&r, 1);
		assert_int_equal(to0->peer, 1);
		assert_string_equal(to0->at.host, "203.0.113.1");
		assert_int_equal(to0->at.port, 41000);
		assert_int_equal(to1->peer, 0);
		assert_string_equal(to1->at.host, "198.51.100.1");
		assert_int_equal(to1->at.port, 40000);
		assert_int_equal(to0->delay_us, cases[i].delay[0]);
		assert_int_equal(to1->delay_us, cases[i].delay[1]);
		assert_int_equal(totals(&r)->openings, 1);
		assert_int_equal(totals(&r)->calls, 0);
		rig_release(&r);
	}
}

static void an_opening_names_only_what_is_open_in_that_family(void **state) {
	(void)state;
	struct relay_rig r;
	rig_init(&r, 0, 0);
	rig_stations(&r, 2);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, RELAY_CALLER | RELAY_CALLED);
	(void)rig_reflect(&r, "198.51.100.1", 40000, RELAY_MAIN_PORT, r.token[0]);
	(void)rig_reflect(&r, "203.0.113.1", 41000, RELAY_SECOND_PORT, r.token[1]);
	int v6 = rig_reflect(&r, "2001:db8::2", 41000, RELAY_MAIN_PORT, r.token[1]);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_UNMAPPED, RELAY_CALLED);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V6, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V6, RELAY_REFUSE_UNMAPPED, RELAY_CALLER);
	(void)rig_reflect(&r, "2001:db8::1", 40000, RELAY_MAIN_PORT, r.token[0]);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V6, 5), RELAY_OPEN);
	assert_string_equal(open_of(&r, 0)->at.host, "2001:db8::2");
	assert_string_equal(open_of(&r, 1)->at.host, "2001:db8::1");
	relay_closed(r.core, v6); /* what the router no longer maps */
	assert_int_equal(rig_call_way(&r, 1, 0, WAY_OPEN_V6, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V6, RELAY_REFUSE_UNMAPPED, RELAY_CALLER);
	rig_release(&r);
}

static void two_dependent_mappings_are_not_opened(void **state) {
	(void)state;
	struct relay_rig r;
	open_pair(&r, "198.51.100.1", "203.0.113.1");
	(void)rig_reflect(&r, "198.51.100.1", 40007, RELAY_SECOND_PORT, r.token[0]);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_OPEN); /* one of them */
	int second = rig_reflect(&r, "203.0.113.2", 41000, RELAY_SECOND_PORT, r.token[1]);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_DEPENDENT, RELAY_CALLER | RELAY_CALLED);
	relay_closed(r.core, second); /* not known */
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_OPEN);
	rig_release(&r);
}

static void an_opening_takes_a_ticket_and_two_stations(void **state) {
	(void)state;
	struct relay_rig r;
	const uint8_t no_ticket[NET_SIG_BYTES] = {0};
	open_pair(&r, "198.51.100.1", "203.0.113.1");
	const struct relay_call call = {.peer = 1, .way = WAY_OPEN_V4, .term = 1, .round = 5};
	struct relay_frame f = {.type = RELAY_CALL, .call = call};
	memcpy(f.call.ticket, no_ticket, sizeof no_ticket);
	relay_take_frame(r.core, r.now_us, r.station[0], &f);
	rig_drain(&r);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_TICKET, 0);
	assert_int_equal(rig_call_way(&r, 0, 2, WAY_OPEN_V4, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_ABSENT, RELAY_CALLED);
	relay_ban(r.core, &(struct banned){1, {1}});
	rig_drain(&r);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_BANNED, RELAY_CALLED);
	rig_release(&r);
}

static void both_calling_at_once_make_one_opening(void **state) {
	(void)state;
	struct relay_rig r;
	open_pair(&r, "198.51.100.1", "203.0.113.1");
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_OPEN);
	rig_pass_ms(&r, 900);
	assert_int_equal(rig_call_way(&r, 1, 0, WAY_OPEN_V4, 5), 0);
	rig_pass_ms(&r, 100);
	assert_int_equal(rig_call_way(&r, 1, 0, WAY_OPEN_V4, 5), RELAY_OPEN);
	assert_int_equal(totals(&r)->openings, 2);
	rig_release(&r);
}

static void openings_of_a_pair_have_a_pace(void **state) {
	(void)state;
	struct relay_rig r;
	open_pair(&r, "198.51.100.1", "203.0.113.1");
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_OPEN);
	rig_pass_ms(&r, 1500);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_OPEN);
	assert_int_equal(rig_call_way(&r, 0, 1, WAY_OPEN_V4, 5), RELAY_REFUSED);
	assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_RATE, 0);
	assert_int_equal(r.sent[0].frame.refused.wait_ms, 3500);
	rig_pass_ms(&r, 3500);
	assert_int_equal(rig_call_way(&r, 1, 0, WAY_OPEN_V4, 5), RELAY_OPEN);
	rig_release(&r);
}

/* However many others call a member, it is asked to dial 8 times at once, then once in a second. */
static void openings_of_a_member_have_a_pace(void **state) {
	(void)state;
	struct relay_rig r;
	enum { PEERS = 12, AT_ONCE = 8 };
	struct pair_end ends[PEERS];
	int opened = 0;
	rig_init(&r, 0, 0);
	for (int i = 0; i < PEERS; i++) {
		const uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)i, 99};
		struct identity id;
		identity_of_seed(seed, &id);
		r.members[0] = id;
		ends[i].member = (uint32_t)i;
		memcpy(ends[i].key, id.key, NET_KEY_BYTES);
		rig_clear(&r);
		r.station[0] = rig_hello(&r, 0, &r.run, (uint32_t)i);
		memcpy(r.token[0], r.sent[0].frame.seen.nonce, NET_TOKEN_BYTES);
		(void)rig_reflect(&r, "198.51.100.1", (uint16_t)(40000 + i), RELAY_MAIN_PORT, r.token[0]);
		if (i == 0) {
			r.station[1] = r.station[0]; /* the victim */
			continue;
		}
		rig_clear(&r);
		struct relay_frame f = {.type = RELAY_CALL, .call = {.way = WAY_OPEN_V4, .term = 1, .round = 1}};
		pair_ticket_sign(&r.run, r.run_id, 1, 1, &ends[0], &ends[i], f.call.ticket);
		relay_take_frame(r.core, r.now_us, r.station[0], &f);
		rig_drain(&r);
		opened += sent_to(&r, r.station[1], RELAY_OPEN) != NULL;
		if (i > AT_ONCE) {
			assert_refused(&r, WAY_OPEN_V4, RELAY_REFUSE_RATE, RELAY_CALLED);
			assert_int_equal(r.sent[0].frame.refused.wait_ms, 1000);
		}
	}
	assert_int_equal(opened, AT_ONCE);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stranger_gets_an_answer_and_is_closed),
		cmocka_unit_test(a_stations_token_is_its_own),
		cmocka_unit_test(a_reflection_stays_until_a_newer_one_or_its_stations_end),
		cmocka_unit_test(the_second_port_takes_reflections_only),
		cmocka_unit_test(reflections_have_a_pace),
		cmocka_unit_test(a_reflection_at_the_main_port_is_proven),
		cmocka_unit_test(a_proof_is_renewed_while_the_reflection_is_open),
		cmocka_unit_test(both_ends_dial_the_others_mapping_at_one_moment),
		cmocka_unit_test(an_opening_names_only_what_is_open_in_that_family),
		cmocka_unit_test(two_dependent_mappings_are_not_opened),
		cmocka_unit_test(an_opening_takes_a_ticket_and_two_stations),
		cmocka_unit_test(both_calling_at_once_make_one_opening),
		cmocka_unit_test(openings_of_a_pair_have_a_pace),
		cmocka_unit_test(openings_of_a_member_have_a_pace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
