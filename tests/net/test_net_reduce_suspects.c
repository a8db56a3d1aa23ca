/* test_net_reduce_suspects.c: whom the all-reduce accuses, when, and whom it does not. */
#include "reduce_pair.h"
#include "tests/common/check.h"

#include <string.h>

enum { NO_PING = -1 };

static void ping(struct pair *p, int from, int waiting) {
	struct reduce_msg m = {
		.type = REDUCE_PING, .round = p->w->doc.round, .attempt = p->w->doc.attempt, .waiting = (uint32_t)waiting};
	if (waiting != NO_PING)
		assert_int_equal(give(p, from, &m, NULL), RV_OK);
}

/* Lets time pass; the peers ping, and say of how many of their chunks they lack contributions. */
static void pass_saying(struct pair *p, int64_t us, int waiting_1, int waiting_2) {
	for (int64_t end = p->w->now_us + us; p->w->now_us < end;) {
		p->w->now_us += WORLD_PING_US / 2;
		ping(p, 2, waiting_2);
		ping(p, 1, waiting_1);
		reduce_tick(p->r, p->w->now_us);
		assert_true(reduce_deadline_us(p->r) > p->w->now_us);
	}
}

/* Peer 2 pings all the time, peer 1 as told; both wait for others. */
static void pass(struct pair *p, int64_t us, bool peer_1_pings) {
	pass_saying(p, us, peer_1_pings ? 1 : NO_PING, 1);
}

static void test_silence_is_suspicious_and_ends(void **state) {
	(void)state;
	struct pair p = pair_new(9);
	pass(&p, WORLD_SILENCE_US - WORLD_PING_US, false);
	assert_int_equal(reduce_suspects(p.r), 0);
	pass(&p, WORLD_PING_US, false);
	assert_int_equal(reduce_suspects(p.r), 2);
	pass(&p, WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 0);
	world_free(p.w);
}

/* Lets time pass in which no message of peer 1 becomes whole, but parts of one keep coming. */
static void pass_with_parts(struct pair *p, int64_t us, bool bulk) {
	for (int64_t end = p->w->now_us + us; p->w->now_us < end;) {
		reduce_part(p->r, p->w->now_us, 1, bulk);
		pass(p, WORLD_PING_US, false);
	}
}

static void test_parts_of_a_message_are_progress(void **state) {
	(void)state;
	struct pair p = pair_new(9);
	pass_with_parts(&p, WORLD_STALL_US - 2 * WORLD_PING_US, true);
	struct reduce_msg m = chunk_msg(&p, REDUCE_SCATTER, 2, 0);
	assert_int_equal(give(&p, 2, &m, NULL), RV_OK);
	pass_with_parts(&p, WORLD_STALL_US - 2 * WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r) & 2, 0);
	pass_with_parts(&p, 2 * WORLD_STALL_US, false); /* of something else than what it owes */
	assert_int_equal(reduce_suspects(p.r) & 2, 2);
	world_free(p.w);
}

/* Two die at once and one is accused first: the other is not given the whole time again. */
static void test_silence_outlives_an_attempt(void **state) {
	(void)state;
	struct pair p = pair_new(9);
	pass(&p, WORLD_SILENCE_US - WORLD_PING_US, false);
	p.w->doc.attempt = 2;
	const struct reduce_roster roster = reduce_roster_of(&p.w->doc, p.w->nodes[0].member);
	reduce_restart(p.r, &roster, p.w->now_us);
	assert_int_equal(reduce_suspects(p.r), 0);
	p.w->now_us += 2 * WORLD_PING_US;
	reduce_tick(p.r, p.w->now_us);
	assert_int_equal(reduce_suspects(p.r) & 2, 2);
	world_free(p.w);
}

/* The document says no deadline. */
static void test_an_answering_peer_that_owes_is_stalled(void **state) {
	(void)state;
	struct pair p = pair_new(3);
	pass(&p, WORLD_STALL_US - WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 0);
	struct reduce_msg m = chunk_msg(&p, REDUCE_SCATTER, 2, 0); /* now 2 owes a reduced chunk only */
	assert_int_equal(give(&p, 2, &m, NULL), RV_OK);
	pass(&p, WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 2);
	pass(&p, 2 * WORLD_STALL_US, true);
	assert_int_equal(reduce_suspects(p.r), 2); /* perhaps 2 waits for 1 */
	m = chunk_msg(&p, REDUCE_SCATTER, 1, 0);   /* 1 has paid what it owed as a contributor: both wait for something */
	assert_int_equal(give(&p, 1, &m, NULL), RV_OK);
	pass(&p, WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 4);
	pass(&p, 2 * WORLD_STALL_US, true);
	assert_int_equal(reduce_suspects(p.r), 6);
	world_free(p.w);
}

static void test_a_broken_link_is_suspicious_when_fatal(void **state) {
	(void)state;
	struct pair p = pair_new(9);
	reduce_link_down(p.r, p.w->now_us, 1, false);
	assert_int_equal(reduce_suspects(p.r), 0);
	reduce_link_down(p.r, p.w->now_us, 2, true);
	assert_int_equal(reduce_suspects(p.r), 4);
	reduce_link_up(p.r, p.w->now_us, 2);
	assert_int_equal(reduce_suspects(p.r), 0);
	world_free(p.w);
}

static void test_own_absence_accuses_nobody(void **state) {
	(void)state;
	struct pair p = pair_new(9);
	p.w->now_us += 100 * WORLD_SILENCE_US; /* we were stopped; what the peers sent is unread */
	reduce_tick(p.r, p.w->now_us);
	assert_int_equal(reduce_suspects(p.r), 0);
	pass(&p, WORLD_SILENCE_US, false);
	assert_int_equal(reduce_suspects(p.r), 2);
	world_free(p.w);
}

/* ---- with a deadline ---- */

enum { DUE_MS = 60000 };
#define DUE_US ((int64_t)DUE_MS * 1000)

/* Three chunks, one each, and an attempt that may take a minute. */
static struct pair pair_with_deadline(void) {
	struct pair p = {.w = world_new(3, 3, 3)};
	for (uint32_t c = 0; c < 3; c++)
		p.w->doc.ranges[c] = (struct owner_range){.first = c, .count = 1, .owner = (uint16_t)c};
	p.w->doc.n_ranges = 3;
	p.w->doc.deadline_ms = DUE_MS;
	world_start(p.w, 0);
	p.r = p.w->nodes[0].reduce;
	return p;
}

static void contribute(struct pair *p, int from) {
	struct reduce_msg m = chunk_msg(p, REDUCE_SCATTER, from, 0);
	assert_int_equal(give(p, from, &m, NULL), RV_OK);
}

/* A peer that sends nothing of what it owes, and a PING with another count each second and a
 * half. */
static void test_what_a_peer_says_of_itself_is_no_progress(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	contribute(&p, 2);
	for (int said = 3; p.w->now_us<WORLD_STALL_US; said = said> 1 ? said - 1 : 3)
		pass_saying(&p, 3 * WORLD_PING_US / 2, said, 1);
	assert_int_equal(reduce_suspects(p.r), 2);
	world_free(p.w);
}

/* An owner that waits for a third one's contribution is not to blame for the mean: the third one
 * is. */
static void test_an_owner_that_waits_is_borne_until_after_the_deadline(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	contribute(&p, 1);
	contribute(&p, 2);
	pass(&p, DUE_US + WORLD_STALL_US - WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 0);
	pass(&p, WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 6);
	world_free(p.w);
}

static void test_an_owner_that_has_all_owes_its_means(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	contribute(&p, 1);
	contribute(&p, 2);
	pass(&p, 2 * WORLD_STALL_US, true);
	pass_saying(&p, WORLD_STALL_US - WORLD_PING_US, 0, 1); /* its clock starts when it says so */
	assert_int_equal(reduce_suspects(p.r), 0);
	pass_saying(&p, 2 * WORLD_PING_US, 0, 1);
	assert_int_equal(reduce_suspects(p.r), 2);
	pass_saying(&p, WORLD_PING_US, 1, 1); /* to take it back helps nobody: contributions are not lost again */
	pass_saying(&p, WORLD_PING_US, 0, 1);
	assert_int_equal(reduce_suspects(p.r), 2);
	world_free(p.w);
}

/* A drip is progress, but not for ever; who waits for the dripping one is not accused with it. */
static void test_a_drip_ends_at_the_deadline(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	contribute(&p, 2);
	pass_with_parts(&p, DUE_US - 2 * WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 0);
	pass_with_parts(&p, 2 * WORLD_PING_US, true);
	assert_int_equal(reduce_suspects(p.r), 2);
	pass_with_parts(&p, 2 * WORLD_STALL_US, true);
	assert_int_equal(reduce_suspects(p.r), 2);
	world_free(p.w);
}

/* Links that come and go start the clocks of silence and stall anew, and not that of the
 * attempt. */
static void test_a_new_link_does_not_move_the_deadline(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	contribute(&p, 2);
	while (p.w->now_us < DUE_US) {
		reduce_link_down(p.r, p.w->now_us, 1, false);
		reduce_link_up(p.r, p.w->now_us, 1);
		pass(&p, 2 * WORLD_PING_US, true);
	}
	assert_int_equal(reduce_suspects(p.r), 2);
	world_free(p.w);
}

static void test_own_absence_moves_the_deadline(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	p.w->now_us += 10 * DUE_US;
	reduce_tick(p.r, p.w->now_us);
	pass_with_parts(&p, DUE_US / 2, true);
	assert_int_equal(reduce_suspects(p.r) & 2, 0);
	world_free(p.w);
}

/* What a PING says: how many of our own chunks lack contributions. */
static void test_a_ping_says_what_we_wait_for(void **state) {
	(void)state;
	struct pair p = pair_with_deadline();
	struct reduce_msg out;
	for (int want = 1; want >= 0; want--) {
		while (reduce_send_control(p.r, p.w->now_us, 1, &out))
			;
		p.w->now_us += WORLD_PING_US;
		reduce_tick(p.r, p.w->now_us);
		assert_true(reduce_send_control(p.r, p.w->now_us, 1, &out));
		assert_int_equal(out.type, REDUCE_PING);
		assert_int_equal(out.waiting, want);
		contribute(&p, 1);
		contribute(&p, 2);
	}
	world_free(p.w);
}

/* Peers 0 and 1 own nothing: they owe each other nothing, whether they are linked or not. Peer 2,
 * who owns all, is accused as ever. */
static void test_two_that_own_nothing_do_not_accuse_each_other(void **state) {
	(void)state;
	struct pair p = {.w = world_new(3, 9, 3)};
	p.w->doc.ranges[0] = (struct owner_range){.first = 0, .count = 9, .owner = 2};
	p.w->doc.n_ranges = 1;
	world_start(p.w, 0);
	p.r = p.w->nodes[0].reduce;
	reduce_link_up(p.r, p.w->now_us, 2);
	pass_saying(&p, 2 * WORLD_SILENCE_US, NO_PING, 0);
	assert_int_equal(reduce_suspects(p.r) & 2, 0);
	reduce_link_up(p.r, p.w->now_us, 1);
	reduce_link_down(p.r, p.w->now_us, 1, true);
	assert_int_equal(reduce_suspects(p.r) & 2, 0);
	p.w->now_us += WORLD_SILENCE_US;
	reduce_tick(p.r, p.w->now_us);
	assert_int_equal(reduce_suspects(p.r), 4);
	world_free(p.w);
}

/* Peer 1 sends what breaks the protocol, and is refused for the rest of the round: it is accused in
 * this attempt, and in the next, in which neither side owes anything, no more. */
static void test_one_refused_is_accused_where_it_deals(void **state) {
	(void)state;
	struct pair p = pair_new(9);
	const struct reduce_msg bad = {.type = REDUCE_SUMS, .round = p.w->doc.round, .attempt = 1};
	struct rv_errtext et;
	reduce_link_up(p.r, p.w->now_us, 2);
	assert_int_equal(give(&p, 1, &bad, &et), RV_E_PROTOCOL);
	assert_int_equal(reduce_suspects(p.r), 2);
	p.w->doc.attempt = 2;
	p.w->doc.ranges[0] = (struct owner_range){.first = 0, .count = 9, .owner = 2};
	p.w->doc.n_ranges = 1;
	const struct reduce_roster roster = reduce_roster_of(&p.w->doc, p.w->nodes[0].member);
	reduce_restart(p.r, &roster, p.w->now_us);
	assert_int_equal(reduce_suspects(p.r), 0);
	const struct reduce_msg good = {.type = REDUCE_PING, .round = p.w->doc.round, .attempt = 2};
	assert_int_equal(give(&p, 1, &good, &et), RV_E_PROTOCOL);
	assert_non_null(strstr(et.text, "was refused earlier in this round"));
	assert_int_equal(reduce_suspects(p.r), 0);
	world_free(p.w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence_is_suspicious_and_ends),
		cmocka_unit_test(test_silence_outlives_an_attempt),
		cmocka_unit_test(test_parts_of_a_message_are_progress),
		cmocka_unit_test(test_an_answering_peer_that_owes_is_stalled),
		cmocka_unit_test(test_a_broken_link_is_suspicious_when_fatal),
		cmocka_unit_test(test_own_absence_accuses_nobody),
		cmocka_unit_test(test_what_a_peer_says_of_itself_is_no_progress),
		cmocka_unit_test(test_an_owner_that_waits_is_borne_until_after_the_deadline),
		cmocka_unit_test(test_an_owner_that_has_all_owes_its_means),
		cmocka_unit_test(test_a_drip_ends_at_the_deadline),
		cmocka_unit_test(test_a_new_link_does_not_move_the_deadline),
		cmocka_unit_test(test_own_absence_moves_the_deadline),
		cmocka_unit_test(test_a_ping_says_what_we_wait_for),
		cmocka_unit_test(test_two_that_own_nothing_do_not_accuse_each_other),
		cmocka_unit_test(test_one_refused_is_accused_where_it_deals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
