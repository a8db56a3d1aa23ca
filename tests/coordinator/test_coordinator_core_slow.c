/* Members with slow lines take part in every k-th round, and no round waits for them in between. */
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { FAST = 3, ALL = 4, SLOW = 3, EVERY = 7 };
static const uint64_t fast_line = 12000000, slow_line = 1200000;

static void open_slow(struct rig *r, uint32_t min_workers, bool skips) {
	rig_init(r, min_workers);
	r->cfg.skips_slow = skips;
	r->cfg.final_round = 40;
	r->cfg.chunk_bytes = 100000;
	rig_start(r);
	rig_join(r, ALL);
}

static void say(struct rig *r, uint32_t who, enum worker_phase phase) {
	struct report rep = rig_report(r, who, phase);
	rep.up_bytes_per_s = 2 * fast_line;
	rep.down_bytes_per_s = who == SLOW ? slow_line : fast_line + who;
	if (phase == WORKER_VOTED)
		rep.digest = rig_digest(rig_doc(r)->round);
	rig_send(r, who, &rep);
}

static void say_first(struct rig *r, int n, enum worker_phase phase) {
	for (int i = 0; i < n; i++)
		say(r, (uint32_t)i, phase);
}

/* All train and are ready, the slow one first, in time: does the roster have it? Then the roster
 * commits the round. */
static bool slow_takes_part(struct rig *r) {
	say_first(r, ALL, WORKER_TRAINING);
	say(r, SLOW, WORKER_READY);
	say_first(r, FAST, WORKER_READY);
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
	int n = rig_doc(r)->n_members;
	say_first(r, n, WORKER_REDUCING);
	say_first(r, n, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->phase, RUN_OPEN);
	return n == ALL;
}

static void test_it_takes_part_in_every_kth_round(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (uint64_t round = 0; round < 3 * EVERY; round++)
		assert_int_equal(slow_takes_part(&r), round % EVERY == 0);
	rig_release(&r);
}

static void test_by_default_rounds_wait_for_it(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, false);
	for (int round = 0; round < 5; round++)
		assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* While it takes part in every round, the others show two or three times its rate: it rests every
 * other round, in which they show theirs. */
static void test_a_slow_line_cannot_hide_behind_what_others_show(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (int round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < 2 * ALL; i++) {
			struct report rep = rig_report(&r, i % ALL, i < ALL ? WORKER_TRAINING : WORKER_READY);
			rep.up_bytes_per_s = rep.down_bytes_per_s = i % ALL == SLOW ? slow_line : slow_line / 10 * 19;
			rig_send(&r, i % ALL, &rep);
		}
		int n = rig_doc(&r)->n_members;
		assert_int_equal(n, round % 2 == 0 ? ALL : FAST);
		say_first(&r, n, WORKER_REDUCING);
		say_first(&r, n, WORKER_VOTED);
	}
	rig_release(&r);
}

/* The others are ready: the round begins at once, though it trains. At its turn it is waited
 * for. */
static void test_no_round_waits_for_one_that_rests(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	assert_true(slow_takes_part(&r));
	for (int round = 1; round <= EVERY; round++) {
		say_first(&r, ALL, WORKER_TRAINING);
		say_first(&r, FAST, WORKER_READY);
		assert_int_equal(rig_doc(&r)->phase, round < EVERY ? RUN_REDUCE : RUN_OPEN);
		if (round == 1)
			assert_true(rig_saw(&r, CORE_EVENT_RESTS, SLOW));
		if (round == EVERY)
			say(&r, SLOW, WORKER_READY);
		assert_int_equal(rig_doc(&r)->phase, RUN_REDUCE);
		int n = rig_doc(&r)->n_members;
		assert_int_equal(n, round < EVERY ? FAST : ALL);
		say_first(&r, n, WORKER_REDUCING);
		say_first(&r, n, WORKER_VOTED);
	}
	rig_release(&r);
}

static void test_it_takes_part_where_too_few_are_left(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, ALL, true);
	for (int round = 0; round < 5; round++)
		assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* Turns are in the records; lines are reported anew. */
static void test_a_restart_keeps_turns(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (int round = 0; round < 2; round++)
		(void)slow_takes_part(&r);
	rig_restart(&r);
	for (int round = 2; round < EVERY; round++)
		assert_false(slow_takes_part(&r));
	assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* After a rollback each takes part at once: rosters of rounds that are gone say nothing. */
static void test_a_rollback_forgets_turns(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (int round = 0; round < 3; round++)
		(void)slow_takes_part(&r);
	assert_int_equal(core_rollback(r.core, r.now_us, 0, true, NULL), RV_OK);
	rig_pump(&r);
	assert_int_equal(rig_doc(&r)->round, 0);
	assert_true(slow_takes_part(&r));
	rig_release(&r);
}

/* A line with three quarters of the others' rate is waited for. */
static void test_a_line_that_makes_the_deadline_is_not_skipped(void **state) {
	(void)state;
	struct rig r;
	open_slow(&r, 2, true);
	for (int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 2 * ALL; i++) {
			struct report rep = rig_report(&r, i % ALL, i < ALL ? WORKER_TRAINING : WORKER_READY);
			rep.up_bytes_per_s = rep.down_bytes_per_s = i % ALL == SLOW ? fast_line / 4 * 3 : fast_line;
			rig_send(&r, i % ALL, &rep);
		}
		assert_int_equal(rig_doc(&r)->n_members, ALL);
		say_first(&r, ALL, WORKER_REDUCING);
		say_first(&r, ALL, WORKER_VOTED);
	}
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_takes_part_in_every_kth_round),
		cmocka_unit_test(test_by_default_rounds_wait_for_it),
		cmocka_unit_test(test_a_slow_line_cannot_hide_behind_what_others_show),
		cmocka_unit_test(test_no_round_waits_for_one_that_rests),
		cmocka_unit_test(test_it_takes_part_where_too_few_are_left),
		cmocka_unit_test(test_a_restart_keeps_turns),
		cmocka_unit_test(test_a_rollback_forgets_turns),
		cmocka_unit_test(test_a_line_that_makes_the_deadline_is_not_skipped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
