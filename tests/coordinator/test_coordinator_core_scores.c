/* test_coordinator_core_scores.c: whose training is scored by whom, and what follows from what
 * auditors measure. */
#include "tests/common/check.h"
#include "tests/coordinator/scores_rig.h"

#include <string.h>

static struct scores s;

static int close_rig(void **state) {
	(void)state;
	rig_release(&s.r);
	return 0;
}

static void orders_name_what_the_author_has_read(void **state) {
	(void)state;
	uint64_t authors = 0, auditors = 0, n = 0;
	static uint64_t begins[SCORES_MEMBERS];
	scores_open(&s, 200000);
	for (int round = 0; round < 60; round++) {
		struct score_order o;
		for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
			begins[m] = scores_doc(&s, m)->leases[0].begin;
		scores_play(&s, 0);
		if (!scores_last_order(&s, &o))
			continue;
		n++;
		assert_int_equal(o.n_pieces, 1); /* what it reads is in one piece here */
		assert_true(o.pieces[0].begin == begins[o.member] && o.pieces[0].count == SCORES_LEASE);
		assert_true(o.share == (SCORE_SHARE_ONE + SCORES_MEMBERS - 1) / SCORES_MEMBERS && o.n_chunks == RIG_CHUNKS);
		assert_false(scores_auditors(&s, &o) >> o.member & 1);
		authors |= 1ull << o.member;
		auditors |= scores_auditors(&s, &o);
		(void)scores_conclude_all(&s, &o, 0, SCORE_MEASURED, 1);
	}
	assert_int_equal(authors, (1u << SCORES_MEMBERS) - 1);
	assert_int_equal(auditors, (1u << SCORES_MEMBERS) - 1);
	/* 0.2 of 7 members' training is 1.05 scores a round; one member is not drawn twice. */
	assert_in_range(n, 55, 60);
	assert_in_range(core_scores(s.r.core).drawn, 57, 69);
}

static void a_restart_draws_the_same(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order before = scores_next_order(&s);
	const uint64_t by = scores_auditors(&s, &before);
	struct score_order after;
	rig_restart(&s.r);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	assert_true(scores_last_order(&s, &after));
	assert_true(after.round == before.round && after.member == before.member);
	assert_true(after.pieces[0].begin == before.pieces[0].begin && rv_hash_equal(&after.root, &before.root));
	assert_int_equal(scores_auditors(&s, &after), by);
}

static void a_run_without_a_share_orders_none(void **state) {
	(void)state;
	scores_open(&s, 0);
	for (int i = 0; i < 5; i++)
		scores_play(&s, 0);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		assert_true(scores_doc(&s, m)->n_scores == 0 && rv_hash_is_zero(&scores_doc(&s, m)->audit_promise));
}

/* One that has been there for long is drawn less often than newcomers. */
static void newcomers_are_drawn_more_often(void **state) {
	(void)state;
	uint64_t of_newcomer = 0, of_others = 0;
	scores_open(&s, 100000);
	for (int round = 0; round < 34; round++)
		scores_play(&s, 1);
	for (int round = 0; round < 24; round++) {
		struct score_order o;
		scores_play(&s, 0);
		if (!scores_last_order(&s, &o))
			continue;
		of_newcomer += o.member == 0;
		of_others += o.member != 0;
		(void)scores_conclude_all(&s, &o, 0, SCORE_MEASURED, 1);
	}
	/* It weighs 8, then 4, beside six of 2. */
	assert_true(of_others > 0 && 6 * of_newcomer > of_others);
}

static void one_that_finds_work_ends_the_audit(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	(void)scores_conclude_all(&s, &o, 0, SCORE_MEASURED, SCORE_LIMIT);
	assert_int_equal(scores_auditors(&s, &o), 0);
	assert_int_equal(core_scores(s.r.core).worthy, 1);
	assert_false(rig_saw(&s.r, CORE_EVENT_DOUBTED, o.member));
}

static uint32_t weight_of(uint32_t member) {
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_READY);
	const struct document *d = scores_doc(&s, member);
	const int place = document_find(d, member);
	assert_true(place >= 0);
	return d->members[place].weight;
}

/* On probation rounds count that an audit vouches for, not those that were only committed; those
 * that a strike took away do not come back. */
static void a_weight_grows_with_audits(void **state) {
	(void)state;
	s.probation = 3;
	scores_open(&s, 200000);
	s.probation = 0;
	for (int i = 0; i < 4; i++)
		scores_play(&s, 0);
	const struct score_order o = scores_next_order(&s);
	assert_true(rig_view(&s.r, o.member).reputation.rounds >= 4);
	assert_int_equal(rig_view(&s.r, o.member).reputation.audited, 0);
	(void)scores_conclude_all(&s, &o, 0, SCORE_MEASURED, 1);
	assert_int_equal(rig_view(&s.r, o.member).reputation.audited, rig_view(&s.r, o.member).reputation.rounds);
	rig_restart(&s.r);
	assert_int_equal(weight_of(o.member), 8); /* all of 16, and at most twice the median */
	assert_int_equal(weight_of((o.member + 1) % SCORES_MEMBERS), 4);
}

/* A verdict vouches for no round after the audited one, however late it is, or repeated after a
 * restart. */
static void a_late_verdict_vouches_for_no_later_round(void **state) {
	(void)state;
	s.probation = 30;
	scores_open(&s, 200000);
	s.probation = 0;
	for (int i = 0; i < 4; i++)
		scores_play(&s, 0);
	const struct score_order o = scores_next_order(&s);
	const uint32_t seen = rig_view(&s.r, o.member).reputation.rounds;
	scores_play(&s, 0);
	(void)scores_conclude_all(&s, &o, 0, SCORE_MEASURED, 1);
	assert_int_equal(rig_view(&s.r, o.member).reputation.rounds, seen + 1);
	assert_int_equal(rig_view(&s.r, o.member).reputation.audited, seen);
	scores_play(&s, 0);
	rig_restart(&s.r);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	assert_int_equal(rig_view(&s.r, o.member).reputation.rounds, seen + 2);
	assert_int_equal(rig_view(&s.r, o.member).reputation.audited, seen);
}

static void two_that_find_it_worthless_strike(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	(void)scores_strike(&s, &o);
	const struct core_member_view m = rig_view(&s.r, o.member);
	assert_true(m.reputation.quarantined_until > scores_doc(&s, 0)->round && !m.banned);
	assert_int_equal(core_scores(s.r.core).worthless, 1);
	rig_restart(&s.r);
	assert_int_equal(rig_view(&s.r, o.member).reputation.reason, CORE_STRIKE_TRAINING);
}

static void one_against_two_strikes_nobody(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	const uint64_t first = scores_conclude_all(&s, &o, 0, SCORE_MEASURED, -3);
	(void)scores_conclude_all(&s, &o, first, SCORE_MEASURED, 0.9f);
	assert_int_equal(scores_auditors(&s, &o), 0);
	assert_int_equal(core_scores(s.r.core).worthy, 1);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		assert_int_equal(rig_view(&s.r, m).reputation.strikes, 0);
}

/* Where honest auditors are unable, two that lie are no majority. */
static void two_of_many_strike_nobody(void **state) {
	uint64_t asked;
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	asked = scores_conclude_all(&s, &o, 0, SCORE_MEASURED, -1);
	asked |= scores_conclude_all(&s, &o, asked, SCORE_UNABLE, 0);
	const uint32_t second = (uint32_t)__builtin_ctzll(scores_auditors(&s, &o) & ~asked);
	scores_conclude(&s, second, &o, SCORE_MEASURED, -1);
	asked |= 1ull << second;
	while ((scores_auditors(&s, &o) & ~asked) != 0)
		asked |= scores_conclude_all(&s, &o, asked, SCORE_UNABLE, 0);
	assert_int_equal(__builtin_popcountll(asked), SCORES_MEMBERS - 1);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
	assert_int_equal(core_scores(s.r.core).worthless, 0);
}

/* Auditors that cannot, or whose own work is worth nothing, are replaced. */
static void others_are_asked_instead(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	const uint64_t unable = scores_conclude_all(&s, &o, 0, SCORE_UNABLE, 0);
	const uint64_t second = scores_auditors(&s, &o) & ~unable;
	assert_int_equal(__builtin_popcountll(second), 1);
	const uint32_t who = (uint32_t)__builtin_ctzll(second);
	s.said[who][0] =
		(struct score_result){.round = o.round, .member = o.member, .verdict = SCORE_MEASURED, .gain = -1, .own = -1};
	s.n_said[who] = 1;
	scores_say(&s, who, WORKER_TRAINING);
	assert_int_equal(__builtin_popcountll(scores_auditors(&s, &o) & ~unable & ~second), 1);
	assert_false(rig_saw(&s.r, CORE_EVENT_DOUBTED, o.member));
}

static void two_that_got_nothing_strike(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	const uint64_t first = scores_conclude_all(&s, &o, 0, SCORE_WITHHELD, 0);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
	(void)scores_conclude_all(&s, &o, first, SCORE_WITHHELD, 0);
	assert_int_equal(rig_view(&s.r, o.member).reputation.reason, CORE_STRIKE_WITHHELD);
	assert_true(rig_saw(&s.r, CORE_EVENT_WITHHELD, o.member));
}

static void one_that_nobody_can_score_is_named(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	uint64_t unable = 0;
	while ((scores_auditors(&s, &o) & ~unable) != 0)
		unable |= scores_conclude_all(&s, &o, unable, SCORE_UNABLE, 0);
	assert_false(rig_saw(&s.r, CORE_EVENT_UNRESOLVED, o.member));
	for (int i = 0; i < SCORES_WINDOW; i++)
		scores_play(&s, 0);
	assert_true(rig_saw(&s.r, CORE_EVENT_UNRESOLVED, o.member));
	assert_true(core_scores(s.r.core).unresolved > 0);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
}

static void verdicts_of_those_not_asked_are_ignored(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		if (!(scores_auditors(&s, &o) >> m & 1))
			scores_conclude(&s, m, &o, SCORE_MEASURED, -1);
	assert_false(rig_saw(&s.r, CORE_EVENT_DOUBTED, o.member));
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
}

/* Plays until the member's training is to be scored, quarantine or not. */
static struct score_order long_wait_for_order_of(uint32_t member) {
	struct score_order o;
	do {
		assert_true(rig_doc(&s.r)->round < 900);
		scores_play_long(&s);
	} while (!scores_last_order(&s, &o) || o.member != member);
	return o;
}

/* The first `n` auditors that are asked find it worthless, the others worth its place. */
static void some_find_it_worthless(const struct score_order *o, int n) {
	uint64_t done = 0;
	memset(s.n_said, 0, sizeof s.n_said);
	while ((scores_auditors(&s, o) & ~done) != 0) {
		const uint32_t who = (uint32_t)__builtin_ctzll(scores_auditors(&s, o) & ~done);
		scores_conclude(&s, who, o, SCORE_MEASURED, n-- > 0 ? -1 : 1);
		done |= 1ull << who;
	}
	assert_int_equal(scores_auditors(&s, o), 0);
}

/* Two find the training of a member worthless in three audits. Returns the member's next one. */
static struct score_order strike_three_times(void) {
	struct score_order o = scores_next_order(&s);
	for (int k = 0; k < CORE_STRIKES_MAX; k++) {
		some_find_it_worthless(&o, 2);
		assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, k + 1);
		o = long_wait_for_order_of(o.member);
	}
	return o;
}

static void two_ban_nobody(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = strike_three_times();
	some_find_it_worthless(&o, 2);
	const struct core_member_view m = rig_view(&s.r, o.member);
	assert_false(m.banned);
	assert_true(m.reputation.strikes == CORE_STRIKES_MAX && m.reputation.struck_round < o.round);
}

static void three_ban(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = strike_three_times();
	some_find_it_worthless(&o, 3);
	assert_true(rig_view(&s.r, o.member).banned);
}

int main(void) {
#define TEST(t) cmocka_unit_test_teardown(t, close_rig)
	const struct CMUnitTest tests[] = {
		TEST(orders_name_what_the_author_has_read),
		TEST(a_restart_draws_the_same),
		TEST(a_run_without_a_share_orders_none),
		TEST(newcomers_are_drawn_more_often),
		TEST(one_that_finds_work_ends_the_audit),
		TEST(a_weight_grows_with_audits),
		TEST(a_late_verdict_vouches_for_no_later_round),
		TEST(two_that_find_it_worthless_strike),
		TEST(one_against_two_strikes_nobody),
		TEST(two_of_many_strike_nobody),
		TEST(others_are_asked_instead),
		TEST(two_that_got_nothing_strike),
		TEST(one_that_nobody_can_score_is_named),
		TEST(verdicts_of_those_not_asked_are_ignored),
		TEST(two_ban_nobody),
		TEST(three_ban),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
