/* test_coordinator_core_scores_appeals.c: appeals against strikes for training, and what a lift
 * leaves of the strikes of one member. */
#include "tests/common/check.h"
#include "tests/coordinator/scores_rig.h"

#include <string.h>

static struct scores s;

static int close_rig(void **state) {
	(void)state;
	rig_release(&s.r);
	return 0;
}

static void appeal(uint32_t who) {
	s.appeals[who] = true;
	scores_say(&s, who, WORKER_TRAINING);
}

static void two_others_clear_a_member(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	const uint64_t before = scores_strike(&s, &o);
	appeal(o.member);
	assert_true(rig_saw(&s.r, CORE_EVENT_APPEALED, o.member));
	const uint64_t others = scores_auditors(&s, &o);
	assert_true(__builtin_popcountll(others) == 2 && (others & before) == 0 && !(others >> o.member & 1));
	(void)scores_conclude_all(&s, &o, 0, SCORE_MEASURED, 1);
	assert_true(rig_saw(&s.r, CORE_EVENT_CLEARED, o.member));
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
	assert_int_equal(rig_view(&s.r, o.member).reputation.quarantined_until, 0);
	/* Once: the same appeal, repeated, does nothing more. */
	appeal(o.member);
	assert_true(scores_auditors(&s, &o) == 0 && core_scores(s.r.core).appeals == 1 &&
				core_scores(s.r.core).lifted == 1);
	rig_restart(&s.r);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
}

static void one_of_them_upholds_the_strike(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	const uint64_t before = scores_strike(&s, &o);
	appeal(o.member);
	const uint32_t one = (uint32_t)__builtin_ctzll(scores_auditors(&s, &o) & ~before);
	scores_conclude(&s, one, &o, SCORE_MEASURED, 0.2f);
	assert_true(rig_saw(&s.r, CORE_EVENT_UPHELD, o.member));
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 1);
	assert_int_equal(scores_auditors(&s, &o), 0);
	appeal(o.member);
	assert_int_equal(scores_auditors(&s, &o), 0);
}

static void who_is_not_struck_cannot_appeal(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		appeal(m);
	assert_int_equal(core_scores(s.r.core).appeals, 0);
	memset(s.appeals, 0, sizeof s.appeals);
	(void)scores_strike(&s, &o);
	appeal((o.member + 1) % SCORES_MEMBERS);
	assert_int_equal(core_scores(s.r.core).appeals, 0);
}

/* Plays until two contributions of one member are being audited, those to an earlier and to a later
 * round. */
static void two_orders(struct score_order o[2]) {
	static struct score_order all[SCORES_MEMBERS * NET_MAX_SCORES];
	for (;;) {
		int n = 0;
		scores_play(&s, 0);
		for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
			for (int i = 0; i < scores_doc(&s, m)->n_scores; i++)
				all[n++] = scores_doc(&s, m)->scores[i];
		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++)
				if (all[i].member == all[k].member && all[i].round < all[k].round) {
					o[0] = all[i];
					o[1] = all[k];
					return;
				}
	}
}

/* The member is struck for both, and cleared of the second. Returns the end of the first
 * quarantine. */
static uint64_t strike_twice_and_clear(struct score_order o[2]) {
	scores_open(&s, 200000);
	two_orders(o);
	scores_measure_all(&s, &o[0], 0.1f);
	const uint64_t first = rig_view(&s.r, o[0].member).reputation.quarantined_until;
	assert_int_equal(first, rig_doc(&s.r)->round + 8);
	scores_measure_all(&s, &o[1], 0.1f);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.strikes, 2);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.quarantined_until, rig_doc(&s.r)->round + 32);
	memset(s.n_said, 0, sizeof s.n_said);
	appeal(o[0].member);
	scores_measure_all(&s, &o[1], 1);
	assert_true(rig_saw(&s.r, CORE_EVENT_CLEARED, o[0].member));
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.strikes, 1);
	return first;
}

/* What an audit finds of rounds before a strike, which no longer count, vouches for none. */
static void rounds_before_a_strike_stay_lost(void **state) {
	(void)state;
	struct score_order o[2];
	s.probation = 30;
	scores_open(&s, 200000);
	s.probation = 0;
	two_orders(o);
	scores_measure_all(&s, &o[0], 0.1f);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.strikes, 1);
	const uint64_t worthy = core_scores(s.r.core).worthy;
	scores_measure_all(&s, &o[1], 1);
	assert_int_equal(core_scores(s.r.core).worthy, worthy + 1);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.audited, 0);
}

static void a_lift_leaves_the_quarantine_before_it(void **state) {
	(void)state;
	struct score_order o[2];
	const uint64_t until = strike_twice_and_clear(o);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.quarantined_until, until);
	rig_restart(&s.r);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.quarantined_until, until);
}

static struct notice notice_of(uint32_t who) {
	struct notice n;
	uint8_t key[NET_KEY_BYTES];
	rig_key(who, key);
	assert_true(core_notice(s.r.core, key, &n));
	return n;
}

/* It is struck for keeping auditors away, then for its training, of which it is cleared. */
static void after_a_lift_the_strike_before_is_told(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order first = scores_next_order(&s);
	scores_evade(&s, &first);
	const struct score_order second = scores_next_order_of(&s, first.member);
	struct score_order third;
	do { /* audited as well, before it is in quarantine */
		scores_play(&s, 0);
	} while (!scores_last_order(&s, &third) || third.member != second.member);
	(void)scores_nobody_gets_it(&s, &second, 0, SCORE_UNREACHED);
	while (scores_auditors(&s, &second) != 0)
		scores_play(&s, 0);
	assert_int_equal(notice_of(first.member).reason, NOTICE_STRUCK_EVADED);
	assert_false(notice_of(first.member).final);
	scores_measure_all(&s, &third, 0.1f);
	assert_int_equal(notice_of(first.member).reason, NOTICE_STRUCK_TRAINING);
	memset(s.n_said, 0, sizeof s.n_said);
	appeal(first.member);
	scores_measure_all(&s, &third, 1);
	assert_true(rig_saw(&s.r, CORE_EVENT_CLEARED, first.member));
	for (int k = 0; k < 2; k++) {
		assert_int_equal(rig_view(&s.r, first.member).reputation.strikes, 1);
		assert_int_equal(notice_of(first.member).reason, NOTICE_STRUCK_EVADED);
		assert_true(notice_of(first.member).final);
		rig_restart(&s.r);
	}
}

/* The coordinator restarts, draws the same audits again, and has the same answers. */
static void restart_and_measure(const struct score_order *o) {
	memset(s.n_said, 0, sizeof s.n_said);
	memset(s.appeals, 0, sizeof s.appeals);
	rig_restart(&s.r);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	assert_true(scores_auditors(&s, o) != 0);
	scores_measure_all(&s, o, 0.1f);
	memset(s.n_said, 0, sizeof s.n_said);
}

static void a_restart_allows_no_second_appeal(void **state) {
	(void)state;
	struct score_order o[2];
	const uint64_t until = strike_twice_and_clear(o);
	restart_and_measure(&o[1]);
	appeal(o[1].member);
	assert_int_equal(core_scores(s.r.core).appeals, 0);
	assert_int_equal(scores_auditors(&s, &o[1]), 0);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.strikes, 1);
	assert_int_equal(rig_view(&s.r, o[0].member).reputation.quarantined_until, until);
}

static void nor_after_an_appeal_in_vain(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	(void)scores_strike(&s, &o);
	memset(s.n_said, 0, sizeof s.n_said);
	assert_false(notice_of(o.member).final);
	appeal(o.member);
	scores_measure_all(&s, &o, 0.1f);
	assert_true(notice_of(o.member).final);
	assert_true(rig_saw(&s.r, CORE_EVENT_UPHELD, o.member));
	restart_and_measure(&o);
	appeal(o.member);
	assert_int_equal(core_scores(s.r.core).appeals, 0);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 1);
}

static void a_restart_before_the_end_of_an_appeal_allows_it_again(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	(void)scores_strike(&s, &o);
	appeal(o.member);
	restart_and_measure(&o);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 1);
	appeal(o.member);
	assert_int_equal(core_scores(s.r.core).appeals, 1);
	scores_measure_all(&s, &o, 1);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
}

/* Prepares two findings about one member that a single report of `*who` completes: its appeal
 * against the first strike, and a second strike. Returns false if no member audits both. */
static bool two_findings_of_one(struct score_order o[2], uint32_t *who) {
	two_orders(o);
	scores_measure_all(&s, &o[0], 0.1f);
	memset(s.n_said, 0, sizeof s.n_said);
	appeal(o[0].member);
	const uint64_t first = scores_auditors(&s, &o[1]);
	(void)scores_conclude_all(&s, &o[1], 0, SCORE_MEASURED, 0.1f);
	const uint64_t second = scores_auditors(&s, &o[1]) & ~first, appealed = scores_auditors(&s, &o[0]);
	if (__builtin_popcountll(first) != 1 || __builtin_popcountll(appealed) != 2 || (second & appealed) == 0)
		return false;
	*who = (uint32_t)__builtin_ctzll(second & appealed);
	(void)scores_conclude_all(&s, &o[0], 1ull << *who, SCORE_MEASURED, 1);
	return true;
}

static void a_lift_and_a_strike_at_once_both_count(void **state) {
	(void)state;
	struct score_order o[2];
	uint32_t who = 0;
	uint8_t secret = 1;
	for (scores_open_of(&s, 200000, secret); !two_findings_of_one(o, &who); scores_open_of(&s, 200000, ++secret)) {
		assert_true(secret < 100);
		rig_release(&s.r);
	}
	scores_note(&s, who, &o[0], SCORE_MEASURED, 1);
	scores_note(&s, who, &o[1], SCORE_MEASURED, 0.1f);
	scores_say(&s, who, WORKER_TRAINING);
	assert_int_equal(core_scores(s.r.core).lifted, 1);
	assert_int_equal(core_scores(s.r.core).worthless, 2);
	const struct core_reputation got = rig_view(&s.r, o[0].member).reputation;
	assert_int_equal(got.strikes, 1);
	assert_int_equal(got.struck_round, o[1].round);
	assert_int_equal(got.quarantined_until, rig_doc(&s.r)->round + 8);
}

enum { FOUR = 4 };

/* Plays until four contributions of one member are being audited, the earliest first. */
static bool four_orders(struct score_order o[FOUR]) {
	enum { ROUNDS = 40 };
	struct score_order all_of[SCORES_MEMBERS][FOUR];
	for (int played = 0; played < ROUNDS; played++) {
		int n[SCORES_MEMBERS] = {0};
		scores_play(&s, 0);
		for (uint64_t at = 0; at <= SCORES_WINDOW; at++)
			for (uint32_t author = 0; author < SCORES_MEMBERS; author++) {
				const struct score_order of = {.round = rig_doc(&s.r)->round - 1 - SCORES_WINDOW + at,
											   .member = author};
				n[author] += of.round < rig_doc(&s.r)->round && scores_auditors(&s, &of) != 0;
				if (scores_auditors(&s, &of) != 0 && n[author] <= FOUR)
					all_of[author][n[author] - 1] = of;
			}
		for (uint32_t author = 0; author < SCORES_MEMBERS; author++)
			if (n[author] >= FOUR) {
				memcpy(o, all_of[author], sizeof all_of[author]);
				return true;
			}
	}
	return false;
}

/* Two appeals that are both won make the next strike the second one, while the quarantine of the
 * third is under way: it goes on. */
static void a_strike_shortens_no_quarantine(void **state) {
	(void)state;
	struct score_order o[FOUR];
	uint8_t secret = 1;
	for (scores_open_of(&s, 1000000, secret); !four_orders(o); scores_open_of(&s, 1000000, ++secret)) {
		assert_true(secret < 100);
		rig_release(&s.r);
	}
	const uint32_t who = o[0].member;
	for (int k = 0; k < 3; k++) {
		scores_measure_all(&s, &o[k], 0.1f);
		assert_int_equal(rig_view(&s.r, who).reputation.strikes, k + 1);
		memset(s.n_said, 0, sizeof s.n_said);
		if (k < 2)
			appeal(who);
	}
	const uint64_t until = rig_view(&s.r, who).reputation.quarantined_until;
	assert_int_equal(until, rig_doc(&s.r)->round + 128);
	for (int k = 0; k < 2; k++) {
		scores_measure_all(&s, &o[k], 1);
		memset(s.n_said, 0, sizeof s.n_said);
	}
	assert_int_equal(rig_view(&s.r, who).reputation.strikes, 1);
	scores_measure_all(&s, &o[3], 0.1f);
	assert_int_equal(rig_view(&s.r, who).reputation.strikes, 2);
	assert_int_equal(rig_view(&s.r, who).reputation.quarantined_until, until);
}

static void one_that_is_needed_in_quarantine_is_named_once(void **state) {
	(void)state;
	struct score_order o;
	scores_open(&s, 200000);
	(void)scores_strike(&s, &o);
	scores_play(&s, 0); /* the others are enough */
	assert_false(rig_saw(&s.r, CORE_EVENT_NEEDED, o.member));
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		if (m != o.member)
			scores_say(&s, m, WORKER_LEAVING);
	for (int i = 0; i < 2; i++) {
		const uint64_t round = scores_doc(&s, o.member)->round;
		scores_play(&s, ~(1ull << o.member));
		assert_int_equal(scores_doc(&s, o.member)->round, round + 1);
		assert_int_equal(rig_saw(&s.r, CORE_EVENT_NEEDED, o.member), i == 0);
	}
}

int main(void) {
#define TEST(t) cmocka_unit_test_teardown(t, close_rig)
	const struct CMUnitTest tests[] = {
		TEST(two_others_clear_a_member),
		TEST(one_of_them_upholds_the_strike),
		TEST(who_is_not_struck_cannot_appeal),
		TEST(a_lift_leaves_the_quarantine_before_it),
		TEST(rounds_before_a_strike_stay_lost),
		TEST(after_a_lift_the_strike_before_is_told),
		TEST(a_restart_allows_no_second_appeal),
		TEST(nor_after_an_appeal_in_vain),
		TEST(a_restart_before_the_end_of_an_appeal_allows_it_again),
		TEST(a_lift_and_a_strike_at_once_both_count),
		TEST(a_strike_shortens_no_quarantine),
		TEST(one_that_is_needed_in_quarantine_is_named_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
