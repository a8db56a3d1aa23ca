/* test_worker_round_pause.c: a worker that its owner pauses: rounds go on without it, and it comes
 * back in the next one. */
#include "round_script.h"
#include "tests/common/check.h"

/* The others count the next attempt without it. */
static void a_pause_ends_the_all_reduce(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_REDUCE_START);
	round_pause(f->c, true);
	expect_next(f, ROUND_REDUCE_STOP);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
	show_attempt(f, RUN_REDUCE, 0, 2, EVERYBODY); /* that has not arrived there yet */
	expect_nothing(f);
	show_attempt(f, RUN_REDUCE, 0, 3, EVERYBODY & ~(1u << FIXTURE_SELF));
	show(f, RUN_OPEN, 1);
	expect_nothing(f);
	round_pause(f->c, false);
	expect_report(f, WORKER_SYNCING);
	expect_action(f, ROUND_FETCH_LOG, 0);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_false(expect_next(f, ROUND_APPLY).participated); /* a roster has left it out */
	apply_ok(f, 0);
	expect_action(f, ROUND_ENCODE, 1); /* late = keep: its steps count in this one */
	assert_int_equal(expect_report(f, WORKER_TRAINING).boot, 78);
}

/* The next roster of round 0, with everybody, this worker as the process `boot`. */
static void show_roster(struct round_driver *f, uint32_t attempt, uint64_t boot) {
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 0, 0);
	document_members(&f->doc, EVERYBODY);
	f->doc.attempt = attempt;
	f->doc.members[FIXTURE_SELF].boot = boot;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
}

/* If the round is still open, its contribution counts. What it had reduced is forgotten, and others
 * must not count on it: it is another process to them. */
static void a_short_pause_costs_an_attempt_only(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	show_roster(f, 1, 77);
	expect_next(f, ROUND_REDUCE_START);
	round_pause(f->c, true);
	expect_next(f, ROUND_REDUCE_STOP);
	round_pause(f->c, false);
	assert_int_equal(expect_report(f, WORKER_READY).boot, 78);
	expect_nothing(f);
	show_roster(f, 2, 78);
	expect_next(f, ROUND_REDUCE_START);
}

static void steps_under_way_are_kept(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 0);
	expect_next(f, ROUND_TRAIN);
	driver_trained(f, 0, 1, 10);
	round_pause(f->c, true);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
	round_pause(f->c, false);
	expect_nothing(f); /* the trainer still has its request */
	expect_report(f, WORKER_TRAINING);
	driver_trained(f, 0, FIXTURE_H, 100);
	expect_next(f, ROUND_ENCODE);
}

/* The disk has the result of the round: it needs no fetching, and its contribution is in it. */
static void a_vote_outlives_the_pause(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	reduce_and_vote(f, 0, digest_of(0));
	expect_report(f, WORKER_VOTED);
	round_pause(f->c, true);
	expect_next(f, ROUND_REDUCE_STOP);
	expect_report(f, WORKER_LEAVING);
	show(f, RUN_OPEN, 1);
	expect_nothing(f);
	round_pause(f->c, false);
	assert_true(expect_next(f, ROUND_APPLY).participated);
}

static void a_pause_ends_fetching(void **state) {
	struct round_driver *f = *state;
	start_with(f, 3, 0, LATE_KEEP);
	show(f, RUN_OPEN, 5);
	expect_action(f, ROUND_FETCH_LOG, 3);
	round_pause(f->c, true);
	expect_next(f, ROUND_CANCEL_FETCH);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
	round_pause(f->c, false);
	expect_action(f, ROUND_FETCH_LOG, 3);
}

/* A rollback is followed at once: the state of before must not come back after the pause. */
static void a_rollback_is_followed_in_a_pause(void **state) {
	struct round_driver *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	show(f, RUN_OPEN, 5);
	expect_next(f, ROUND_TRAIN);
	round_pause(f->c, true);
	expect_nothing(f);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 5, 0);
	f->doc.term = 1;
	f->doc.term_round = 4;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	expect_next(f, ROUND_ROLLBACK);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, round_script_setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		T(a_pause_ends_the_all_reduce), T(a_short_pause_costs_an_attempt_only),
		T(steps_under_way_are_kept),    T(a_vote_outlives_the_pause),
		T(a_pause_ends_fetching),       T(a_rollback_is_followed_in_a_pause),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
