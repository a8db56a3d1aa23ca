/* test_coordinator_core_scores_repeat.c: audits that repeat an author's steps from the inner state
 * to which it has committed. */
#include "tests/common/check.h"
#include "tests/coordinator/scores_rig.h"

#include <string.h>

static struct scores s;

static int close_rig(void **state) {
	(void)state;
	rig_release(&s.r);
	return 0;
}

static void open_repeating_rig(uint32_t ppm, uint32_t share_ppm) {
	s.repeat_ppm = share_ppm;
	scores_open(&s, ppm);
	s.repeat_ppm = 0;
	s.commits = true;
}

/* Plays rounds until an audit that repeats is drawn. */
static struct score_order next_repeat(void) {
	struct score_order o;
	do
		o = scores_next_order(&s);
	while (!o.repeat);
	return o;
}

static void steps_are_repeated_from_what_was_committed_to(void **state) {
	(void)state;
	open_repeating_rig(200000, 1000000);
	scores_play(&s, 0); /* nobody has an inner state from before */
	const struct score_order first = scores_next_order(&s), o = first.repeat ? first : next_repeat();
	const struct rv_hash begin = scores_inner_root(o.member, o.round - 1), end = scores_inner_root(o.member, o.round);
	assert_true(rv_hash_equal(&o.inner_begin, &begin) && rv_hash_equal(&o.inner_end, &end));
	assert_int_equal(score_orders_check(&o, 1, o.round + 1, NULL), RV_OK);
	uint64_t read = 0;
	for (int i = 0; i < o.n_pieces; i++)
		read += o.pieces[i].count;
	assert_int_equal(read, SCORES_LEASE);
	assert_true(core_scores(s.r.core).repeats > 0);
}

static void a_share_is_repeated(void **state) {
	(void)state;
	open_repeating_rig(400000, 300000);
	for (int round = 0; round < 60; round++)
		scores_play(&s, 0);
	const struct core_score_figures f = core_scores(s.r.core);
	assert_in_range(f.repeats * 100 / f.drawn, 15, 45);
}

/* One whose steps begin from another state, or whose line is slow, is scored; so is all of a run
 * without a share. */
static void what_cannot_be_repeated_is_scored(void **state) {
	(void)state;
	open_repeating_rig(200000, 1000000);
	memset(s.breaks_off, 1, sizeof s.breaks_off);
	for (int i = 0; i < 8; i++)
		scores_play(&s, 0);
	assert_int_equal(core_scores(s.r.core).repeats, 0);
	assert_false(rig_saw(&s.r, CORE_EVENT_NO_REPEAT, 3)); /* of seven it could have been otherwise */
	scores_play(&s, 0);
	assert_true(rig_saw(&s.r, CORE_EVENT_NO_REPEAT, 3));
	memset(s.breaks_off, 0, sizeof s.breaks_off);
	s.up_bytes_per_s = SCORES_INNER_BYTES / 120;
	for (int i = 0; i < 8; i++)
		scores_play(&s, 0);
	assert_int_equal(core_scores(s.r.core).repeats, 0);
	s.up_bytes_per_s = SCORES_INNER_BYTES / 119 + 1;
	(void)next_repeat();
	s.up_bytes_per_s = 0; /* faster than could be measured */
	(void)next_repeat();
	assert_int_equal(close_rig(NULL), 0);
	open_repeating_rig(200000, 0);
	for (int i = 0; i < 8; i++)
		scores_play(&s, 0);
	assert_true(core_scores(s.r.core).drawn > 0);
	assert_int_equal(core_scores(s.r.core).repeats, 0);
}

/* Whose rounds seldom begin from another state, as after a restart, is not told of. */
static void one_that_breaks_off_now_and_then_is_not_told_of(void **state) {
	(void)state;
	open_repeating_rig(200000, 1000000);
	for (int i = 0; i < 32; i++) {
		s.breaks_off[3] = i % 8 != 0;
		scores_play(&s, 0);
	}
	assert_false(rig_saw(&s.r, CORE_EVENT_NO_REPEAT, 3));
}

/* A member that missed a round begins from a state of its own. */
static void one_that_missed_a_round_is_scored(void **state) {
	(void)state;
	int drawn = 0;
	open_repeating_rig(1000000, 1000000);
	scores_play(&s, 0);
	for (int i = 0; i < 24; i++) {
		struct score_order o;
		const uint64_t round = scores_doc(&s, 1)->round;
		scores_say(&s, 0, WORKER_LEAVING);
		scores_play(&s, 1);
		assert_int_equal(scores_doc(&s, 1)->round, round + 1);
		scores_play(&s, 0);
		if (scores_last_order(&s, &o) && o.member == 0)
			drawn++;
		assert_true(!scores_last_order(&s, &o) || o.member != 0 || !o.repeat);
	}
	assert_true(drawn > 0);
}

/* All that have the order and are not in `but` come to that distance. */
static uint64_t all_repeat(const struct score_order *o, uint64_t but, float far) {
	const uint64_t by = scores_auditors(&s, o) & ~but;
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++) {
		if (!(by >> m & 1))
			continue;
		scores_note(&s, m, o, SCORE_REPEATED, 0);
		s.said[m][s.n_said[m] - 1].gain = far;
		scores_say(&s, m, WORKER_TRAINING);
	}
	return by;
}

static void two_that_come_to_something_else_strike(void **state) {
	(void)state;
	open_repeating_rig(200000, 1000000);
	const struct score_order o = next_repeat();
	const uint64_t first = all_repeat(&o, 0, 0.5f);
	assert_true(rig_saw(&s.r, CORE_EVENT_DOUBTED, o.member));
	assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, 0);
	(void)all_repeat(&o, first, 0.5f);
	assert_true(rig_saw(&s.r, CORE_EVENT_UNREPEATED, o.member));
	assert_int_equal(rig_view(&s.r, o.member).reputation.reason, CORE_STRIKE_TRAINING);
}

static void one_that_comes_to_the_same_ends_the_audit(void **state) {
	(void)state;
	open_repeating_rig(200000, 1000000);
	const struct score_order o = next_repeat();
	(void)all_repeat(&o, 0, SCORE_REPEAT_LIMIT);
	assert_int_equal(scores_auditors(&s, &o), 0);
	assert_int_equal(core_scores(s.r.core).worthy, 1);
}

/* A repeat takes three passes over all that its author has read, here SCORES_LEASE sequences, a
 * score four. */
static void repeats_are_paid_for(void **state) {
	enum { ROUNDS = 200 };
	(void)state;
	const struct {
		uint32_t repeat_ppm;
		uint64_t least, most; /* drawn in a hundred rounds */
	} shares[] = {{0, 30, 55}, {1000000, 42, 75}};
	for (int k = 0; k < 2; k++) {
		uint64_t n = 0;
		open_repeating_rig(80000, shares[k].repeat_ppm); /* 7 x 0.08 x 3 / 4, or x 3 / 3 a round */
		for (int i = 0; i < ROUNDS; i++)
			scores_play_long(&s);
		n = core_scores(s.r.core).drawn * 100 / ROUNDS;
		assert_in_range(n, shares[k].least, shares[k].most);
		if (k == 0)
			rig_release(&s.r);
	}
}

/* Of a long round only some sequences are scored, but all are repeated: eight times as many. */
static void repeats_of_long_rounds_are_rarer(void **state) {
	enum { ROUNDS = 100, SCORED = 64, LONG = 8 * SCORED };
	uint64_t drawn[2];
	(void)state;
	for (int k = 0; k < 2; k++) {
		s.lease = LONG;
		open_repeating_rig(40000, k * 1000000);
		for (int i = 0; i < ROUNDS; i++)
			scores_play_long(&s);
		drawn[k] = core_scores(s.r.core).drawn;
		if (k == 0)
			rig_release(&s.r);
	}
	s.lease = SCORES_LEASE;
	assert_in_range(drawn[0], 130, 200); /* 7 x 0.04 x 3 / 4 x 8: 1.68 a round */
	assert_in_range(drawn[1], 14, 45);   /* 7 x 0.04 x 3 / 3: 0.28 */
}

/* All that are asked get it too slowly, in two audits in a row. */
static void one_that_drips_is_struck(void **state) {
	uint64_t struck = 0;
	(void)state;
	open_repeating_rig(200000, 1000000);
	struct score_order o = next_repeat();
	for (int k = 0; k < 2; k++) {
		s.apart_from = o.member; /* that does not excuse it: it gave something */
		s.apart = scores_nobody_gets_it(&s, &o, 0, SCORE_SLOW);
		assert_int_equal(__builtin_popcountll(s.apart), 3);
		while (scores_auditors(&s, &o) != 0)
			scores_play(&s, 0);
		s.apart = 0;
		struck = o.round;
		assert_int_equal(core_scores(s.r.core).evaded, k + 1);
		assert_int_equal(rig_view(&s.r, o.member).reputation.strikes, k);
		for (uint32_t member = o.member; k == 0 && (o.round == struck || o.member != member || !o.repeat);)
			o = scores_next_order(&s);
	}
	assert_int_equal(rig_view(&s.r, o.member).reputation.reason, CORE_STRIKE_EVADED);
}

/* A verdict must be one that the order can have: one that answers what was ordered before a restart
 * of the coordinator, or that an auditor makes up, does not count. */
static void verdicts_that_do_not_fit_the_order_are_ignored(void **state) {
	(void)state;
	scores_open(&s, 200000);
	const struct score_order scored = scores_next_order(&s);
	assert_false(scored.repeat);
	(void)all_repeat(&scored, 0, 0.5f);
	assert_false(rig_saw(&s.r, CORE_EVENT_DOUBTED, scored.member));
	memset(s.n_said, 0, sizeof s.n_said);
	(void)scores_conclude_all(&s, &scored, 0, SCORE_SLOW, 0);
	assert_int_equal(__builtin_popcountll(scores_auditors(&s, &scored)), 1);
	assert_int_equal(close_rig(NULL), 0);
	open_repeating_rig(200000, 1000000);
	const struct score_order repeated = next_repeat();
	(void)scores_conclude_all(&s, &repeated, 0, SCORE_MEASURED, -1);
	assert_false(rig_saw(&s.r, CORE_EVENT_DOUBTED, repeated.member));
	memset(s.n_said, 0, sizeof s.n_said);
	(void)scores_conclude_all(&s, &repeated, 0, SCORE_MEASURED, 1);
	assert_int_equal(core_scores(s.r.core).worthy, 0);
	assert_int_equal(__builtin_popcountll(scores_auditors(&s, &repeated)), 1);
}

/* An audit that repeats is a score after a restart; an answer to the former is none to the
 * latter. */
static void after_a_restart_a_repeat_is_a_score(void **state) {
	(void)state;
	open_repeating_rig(200000, 1000000);
	const struct score_order o = next_repeat();
	rig_restart(&s.r);
	s.commits = false;
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	assert_true(scores_auditors(&s, &o) != 0);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		for (int i = 0; i < scores_doc(&s, m)->n_scores; i++)
			assert_false(scores_doc(&s, m)->scores[i].repeat);
	(void)all_repeat(&o, 0, 0.5f);
	assert_false(rig_saw(&s.r, CORE_EVENT_DOUBTED, o.member));
}

int main(void) {
#define TEST(t) cmocka_unit_test_teardown(t, close_rig)
	const struct CMUnitTest tests[] = {
		TEST(steps_are_repeated_from_what_was_committed_to),
		TEST(a_share_is_repeated),
		TEST(what_cannot_be_repeated_is_scored),
		TEST(one_that_breaks_off_now_and_then_is_not_told_of),
		TEST(one_that_missed_a_round_is_scored),
		TEST(two_that_come_to_something_else_strike),
		TEST(one_that_comes_to_the_same_ends_the_audit),
		TEST(repeats_are_paid_for),
		TEST(repeats_of_long_rounds_are_rarer),
		TEST(one_that_drips_is_struck),
		TEST(verdicts_that_do_not_fit_the_order_are_ignored),
		TEST(after_a_restart_a_repeat_is_a_score),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
