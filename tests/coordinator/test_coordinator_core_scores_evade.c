/* test_coordinator_core_scores_evade.c: authors that keep their auditors away. */
#include "tests/common/check.h"
#include "tests/coordinator/scores_rig.h"

#include <string.h>

static struct scores s;

static int close_rig(void **state) {
	(void)state;
	rig_release(&s.r);
	return 0;
}

static void two_audits_in_a_row_that_it_evades_strike(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order first = scores_next_order(&s);
	scores_evade(&s, &first);
	assert_true(rig_saw(&s.r, CORE_EVENT_EVADED, first.member));
	assert_int_equal(rig_view(&s.r, first.member).reputation.strikes, 0);
	const struct score_order second = scores_next_order_of(&s, first.member);
	scores_evade(&s, &second);
	const struct core_reputation got = rig_view(&s.r, first.member).reputation;
	assert_true(got.strikes == 1 && got.reason == CORE_STRIKE_EVADED && got.struck_round == second.round);
	assert_true(got.quarantined_until > rig_doc(&s.r)->round);
	assert_int_equal(core_scores(s.r.core).evaded, 2);
	rig_restart(&s.r);
	assert_int_equal(rig_view(&s.r, first.member).reputation.reason, CORE_STRIKE_EVADED);
}

static void a_restart_forgets_no_audit_that_it_evaded(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order first = scores_next_order(&s);
	scores_evade(&s, &first);
	memset(s.n_said, 0, sizeof s.n_said);
	rig_restart(&s.r);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	const struct score_order second = scores_next_order_of(&s, first.member);
	scores_evade(&s, &second);
	assert_int_equal(rig_view(&s.r, first.member).reputation.reason, CORE_STRIKE_EVADED);
}

static void a_measurement_begins_a_new_row(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order first = scores_next_order(&s);
	scores_evade(&s, &first);
	const struct score_order second = scores_next_order_of(&s, first.member);
	(void)scores_conclude_all(&s, &second, 0, SCORE_MEASURED, 1);
	const struct score_order third = scores_next_order_of(&s, first.member);
	scores_evade(&s, &third);
	assert_int_equal(core_scores(s.r.core).evaded, 2);
	assert_int_equal(rig_view(&s.r, first.member).reputation.strikes, 0);
}

/* One auditor that lies, or has a bad line, costs an honest member nothing. */
static void one_that_does_not_reach_it_is_outweighed(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	const uint64_t one = scores_conclude_all(&s, &o, 0, SCORE_UNREACHED, 0);
	assert_int_equal(__builtin_popcountll(scores_auditors(&s, &o) & ~one), 2); /* at once */
	(void)scores_conclude_all(&s, &o, one, SCORE_MEASURED, 1);
	assert_int_equal(core_scores(s.r.core).worthy, 1);
	while (rig_doc(&s.r)->round <= o.round + SCORES_WINDOW)
		scores_play(&s, 0);
	assert_int_equal(core_scores(s.r.core).evaded, 0);
}

/* One of the three finds a link in time. */
static void one_that_reaches_it_later_ends_that(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	const uint64_t away = scores_nobody_gets_it(&s, &o, 0, SCORE_UNREACHED);
	const uint32_t one = (uint32_t)__builtin_ctzll(away);
	scores_play(&s, 0);
	scores_play(&s, 0);
	for (uint8_t i = 0; i < s.n_said[one]; i++)
		if (s.said[one][i].round == o.round && s.said[one][i].member == o.member)
			s.said[one][i] = (struct score_result){
				.round = o.round, .member = o.member, .verdict = SCORE_MEASURED, .gain = 1, .own = 1};
	scores_say(&s, one, WORKER_TRAINING);
	assert_int_equal(scores_auditors(&s, &o), 0);
	assert_int_equal(core_scores(s.r.core).worthy, 1);
}

/* It took part in no round with its auditors since they were asked: its line is down, or theirs. */
static void who_is_not_there_evades_nothing(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	assert_int_equal(__builtin_popcountll(scores_nobody_gets_it(&s, &o, 0, SCORE_UNREACHED)), 3);
	while (!rig_saw(&s.r, CORE_EVENT_UNRESOLVED, o.member)) {
		scores_say(&s, o.member, WORKER_SYNCING);
		scores_play(&s, 1ull << o.member);
		rig_wait(&s.r, 6 * RIG_S); /* grace: a round may wait for it */
	}
	assert_int_equal(core_scores(s.r.core).evaded, 0);
}

/* It is taken for apart by those whose links it ends. */
static void links_that_it_cuts_do_not_excuse_it(void **state) {
	(void)state;
	for (int k = 0; k < 2; k++) {
		scores_open(&s, 200000);
		const struct score_order o = scores_next_order(&s);
		s.apart_from = o.member;
		s.apart = scores_nobody_gets_it(&s, &o, 0, k == 0 ? SCORE_UNREACHED : SCORE_CUT);
		while (scores_auditors(&s, &o) != 0)
			scores_play(&s, 0);
		assert_int_equal(core_scores(s.r.core).evaded, k);
		s.apart = 0;
		if (k == 0)
			rig_release(&s.r);
	}
}

/* Rounds are shorter than the time after which an auditor says that it did not get it. */
static void what_auditors_say_late_counts(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	uint64_t asked = scores_auditors(&s, &o);
	for (int i = 0; i < 4; i++)
		scores_play(&s, 0);
	assert_int_equal(__builtin_popcountll(scores_auditors(&s, &o)), 2); /* the first one is not waited for */
	asked |= scores_auditors(&s, &o);
	asked |= scores_nobody_gets_it(&s, &o, 0, SCORE_CUT);
	while (scores_auditors(&s, &o) != 0)
		scores_play(&s, 0);
	assert_int_equal(core_scores(s.r.core).evaded, 1);
	assert_int_equal(__builtin_popcountll(asked), 3);
}

/* It gives nothing to the first, and keeps the others away. */
static void withholding_from_one_does_not_help(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order o = scores_next_order(&s);
	const uint64_t first = scores_conclude_all(&s, &o, 0, SCORE_WITHHELD, 0);
	assert_int_equal(__builtin_popcountll(scores_nobody_gets_it(&s, &o, first, SCORE_UNREACHED)), 3);
	while (rig_doc(&s.r)->round <= o.round + SCORES_WINDOW)
		scores_play(&s, 0);
	assert_int_equal(core_scores(s.r.core).evaded, 1);
}

static void end_window(const struct score_order *o) {
	while (rig_doc(&s.r)->round <= o->round + SCORES_WINDOW)
		scores_play(&s, 0);
}

/* Shows nothing worth having to the first `shown` auditors, and answers all others so. */
static void show_to_some(const struct score_order *o, int shown, enum score_verdict others) {
	uint64_t done = 0;
	for (uint64_t by; (by = scores_auditors(&s, o) & ~done) != 0; shown--) {
		const uint32_t who = (uint32_t)__builtin_ctzll(by);
		done |= 1ull << who;
		scores_conclude(&s, who, o, shown > 0 ? SCORE_MEASURED : others, -1);
	}
}

/* What some find worthless is hidden from the others. */
static void showing_zeros_to_some_does_not_help(void **state) {
	(void)state;
	for (int shown = 1; shown <= 2; shown++) {
		scores_open(&s, 200000);
		const struct score_order o = scores_next_order(&s);
		show_to_some(&o, shown, SCORE_WITHHELD);
		const struct core_reputation got = rig_view(&s.r, o.member).reputation;
		assert_true(got.strikes == 1 && (shown == 2 || got.reason == CORE_STRIKE_WITHHELD));
		if (shown == 1)
			rig_release(&s.r);
	}
}

/* It shows zeros to the first, and ends its links with the others, or is not to be reached. */
static void showing_zeros_to_one_and_keeping_others_away_does_not_help(void **state) {
	static const enum score_verdict how[] = {SCORE_CUT, SCORE_UNREACHED};
	(void)state;
	for (int k = 0; k < 2; k++) {
		scores_open(&s, 200000);
		struct score_order o = scores_next_order(&s);
		for (int audit = 0; audit < 2; audit++) {
			show_to_some(&o, 1, how[k]);
			end_window(&o);
			assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, audit);
			memset(s.n_said, 0, sizeof s.n_said);
			if (audit == 0)
				o = scores_next_order_of(&s, o.member);
		}
		assert_int_equal(rig_view(&s.r, o.member).reputation.reason, CORE_STRIKE_EVADED);
		if (k == 0)
			rig_release(&s.r);
	}
}

/* One auditor lies, and two find the links of an honest author bad: one that gets it clears it. */
static void one_that_finds_it_worthy_ends_that(void **state) {
	(void)state;
	scores_open(&s, 200000);
	struct score_order o = scores_next_order(&s);
	for (int audit = 0; audit < 2; audit++) {
		uint64_t done = scores_conclude_all(&s, &o, 0, SCORE_MEASURED, -1);
		done |= scores_conclude_all(&s, &o, done, SCORE_CUT, 0);
		const uint32_t one = (uint32_t)__builtin_ctzll(scores_auditors(&s, &o) & ~done);
		scores_conclude(&s, one, &o, SCORE_MEASURED, 1);
		done |= 1ull << one;
		(void)scores_nobody_gets_it(&s, &o, done, SCORE_CUT);
		end_window(&o);
		memset(s.n_said, 0, sizeof s.n_said);
		if (audit == 0)
			o = scores_next_order_of(&s, o.member);
	}
	assert_int_equal(core_scores(s.r.core).evaded, 0);
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
}

int main(void) {
#define TEST(t) cmocka_unit_test_teardown(t, close_rig)
	const struct CMUnitTest tests[] = {
		TEST(two_audits_in_a_row_that_it_evades_strike),
		TEST(a_restart_forgets_no_audit_that_it_evaded),
		TEST(a_measurement_begins_a_new_row),
		TEST(one_that_does_not_reach_it_is_outweighed),
		TEST(one_that_reaches_it_later_ends_that),
		TEST(who_is_not_there_evades_nothing),
		TEST(links_that_it_cuts_do_not_excuse_it),
		TEST(what_auditors_say_late_counts),
		TEST(withholding_from_one_does_not_help),
		TEST(showing_zeros_to_some_does_not_help),
		TEST(showing_zeros_to_one_and_keeping_others_away_does_not_help),
		TEST(one_that_finds_it_worthy_ends_that),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
