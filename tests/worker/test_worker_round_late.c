/* test_worker_round_late.c: rounds that were committed without this worker, or with other bytes
 * than its own: they are fetched in order, and its progress is kept or not. */
#include "round_script.h"
#include "tests/common/check.h"

static void missed_rounds_are_fetched_in_order(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 3);
	expect_report(f, WORKER_SYNCING);
	for (uint64_t round = 0; round < 3; round++) {
		struct round_action next = {0}, a = expect_next(f, ROUND_FETCH_LOG);
		struct rv_hash digest = digest_of(round);
		assert_int_equal(a.round, round);
		assert_true(rv_hash_equal(&a.expect, &digest));
		assert_int_equal(round_fetch_after(f->c, &a, &next), round < 2);
		assert_true(round == 2 || (next.type == ROUND_FETCH_LOG && next.round == round + 1));
		expect_nothing(f);
		round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, round, true);
		a = expect_next(f, ROUND_APPLY);
		assert_false(a.participated);
		apply_ok(f, round);
	}
	expect_next(f, ROUND_TRAIN);
	expect_report(f, WORKER_TRAINING);
}

/* Starts again at the beginning of a round that commits meanwhile: was our former gradient in
 * it? */
static bool participated_after_a_restart(struct round_driver *f, bool had_former, bool left_out) {
	round_driver_start(f, (struct round_config){.had_former = had_former}, 3, 0);
	if (left_out) {
		show_attempt(f, RUN_REDUCE, 3, 1, EVERYBODY & ~(UINT64_C(1) << FIXTURE_SELF));
		expect_next(f, ROUND_TRAIN);
	}
	show(f, RUN_OPEN, 4);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 3, true);
	return expect_next(f, ROUND_APPLY).participated;
}

static void progress_of_rounds_before_may_have_been_given(void **state) {
	struct round_driver *f = *state;
	assert_false(participated_after_a_restart(f, false, false));
	assert_true(participated_after_a_restart(f, true, false)); /* to count it twice would be worse than to lose it */
	assert_false(participated_after_a_restart(f, true, true));
}

static void late_training_goes_on_while_fetching_and_progress_is_kept(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 0);
	expect_next(f, ROUND_TRAIN);
	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_FETCH_LOG);
	driver_trained(f, 0, 3, 30);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	struct round_action a = expect_next(f, ROUND_APPLY);
	assert_int_equal(a.late, LATE_KEEP);
	assert_false(a.participated);
	driver_trained(f, 0, 4, 40); /* stopped at a step boundary */
	apply_ok(f, 0);
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H - 4);
	assert_int_equal(expect_report(f, WORKER_TRAINING).tokens, 40);
}

/* A worker whose time is over contributes what it has; kept over a round that it missed, it has
 * still had its time. */
static void time_that_is_up_ends_the_contribution(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 0);
	expect_next(f, ROUND_TRAIN);
	round_on_time_up(f->c, 0); /* not before a step */
	expect_nothing(f);
	driver_trained(f, 0, 2, 20);
	round_on_time_up(f->c, 1); /* of no round of ours */
	expect_nothing(f);
	round_on_time_up(f->c, 0);
	assert_int_equal(expect_next(f, ROUND_ENCODE).round, 0);
	driver_encoded(f->c, 0);
	expect_nothing(f);
	struct report r = expect_report(f, WORKER_READY);
	assert_int_equal(r.tokens, 20);
	show(f, RUN_OPEN, 1); /* committed without us */
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_next(f, ROUND_APPLY);
	apply_ok(f, 0);
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H - 2);
	driver_trained(f, 1, 2, 20);
	round_on_time_up(f->c, 1);
	expect_next(f, ROUND_ENCODE);
	round_on_encoded(f->c, 1, NULL); /* not finite: from theta, with new time */
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H);
}

static void late_progress_is_discarded_by_policy(void **state) {
	struct round_driver *f = *state;
	start_with(f, 0, 0, LATE_DISCARD);
	make_ready(f, 0);
	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_int_equal(expect_next(f, ROUND_APPLY).late, LATE_DISCARD);
	apply_ok(f, 0);
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H);
}

static void left_out_but_ready_contributes_to_the_next_round(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	show_attempt(f, RUN_REDUCE, 0, 1, 0x3);
	expect_nothing(f);
	expect_report(f, WORKER_READY);
	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_false(expect_next(f, ROUND_APPLY).participated);
	apply_ok(f, 0);
	assert_int_equal(expect_next(f, ROUND_ENCODE).round, 1);
}

static void a_minority_fetches_the_committed_bytes(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	reduce_and_vote(f, 0, digest_of(99));
	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_REDUCE_STOP);
	struct rv_hash digest = digest_of(0);
	assert_hash(expect_next(f, ROUND_FETCH_LOG).expect, digest);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_hash(expect_next(f, ROUND_APPLY).expect, digest);
}

static void a_fetch_that_was_no_use_is_repeated_after_a_pause(void **state) {
	struct round_driver *f = *state;
	struct round_action a;
	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_FETCH_LOG);
	f->now += 1000 * DRIVER_HEARTBEAT_US;
	while (round_next_action(f->c, f->now, &a)) /* who is asked, and for how long, is not its matter */
		assert_int_equal(a.type, ROUND_TRAIN);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, false);
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_next(f, ROUND_APPLY);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, round_script_setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		T(missed_rounds_are_fetched_in_order),
		T(progress_of_rounds_before_may_have_been_given),
		T(late_training_goes_on_while_fetching_and_progress_is_kept),
		T(time_that_is_up_ends_the_contribution),
		T(late_progress_is_discarded_by_policy),
		T(left_out_but_ready_contributes_to_the_next_round),
		T(a_minority_fetches_the_committed_bytes),
		T(a_fetch_that_was_no_use_is_repeated_after_a_pause),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
