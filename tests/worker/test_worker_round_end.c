/* test_worker_round_end.c: the end of a run: the last outer step, and a state that the majority has
 * vouched for. */
#include "round_script.h"
#include "tests/common/check.h"

static void done_applies_the_last_round_first(void **state) {
	struct round_driver *f = *state;
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	make_ready(f, FIXTURE_ROUNDS - 1);
	reduce_and_vote(f, FIXTURE_ROUNDS - 1, digest_of(FIXTURE_ROUNDS - 1));
	show(f, RUN_DONE, FIXTURE_ROUNDS);
	expect_next(f, ROUND_REDUCE_STOP);
	expect_next(f, ROUND_APPLY);
	apply_ok(f, FIXTURE_ROUNDS - 1);
	expect_nothing(f); /* until a majority has vouched for the end, or a while has passed */
	f->now += 100 * DRIVER_HEARTBEAT_US;
	expect_next(f, ROUND_FINISH);
	assert_false(round_end_verified(f->c));
	expect_nothing(f);
}

static void a_coordinator_that_ended_is_waited_for_less(void **state) {
	struct round_driver *f = *state;
	start_with(f, FIXTURE_ROUNDS, 0, LATE_KEEP);
	show(f, RUN_DONE, FIXTURE_ROUNDS);
	round_on_away(f->c, f->now, true);
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	round_on_away(f->c, f->now, false); /* it was away for a moment */
	f->now += 5 * DRIVER_HEARTBEAT_US;
	expect_nothing(f);
	round_on_away(f->c, f->now, true);
	f->now += 2 * DRIVER_HEARTBEAT_US;
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	expect_next(f, ROUND_FINISH);
	assert_false(round_end_verified(f->c));
}

/* Whether the run has ended, only the coordinator can tell. */
static void a_commit_is_waited_for_without_end(void **state) {
	struct round_driver *f = *state;
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	make_ready(f, FIXTURE_ROUNDS - 1);
	reduce_and_vote(f, FIXTURE_ROUNDS - 1, digest_of(FIXTURE_ROUNDS - 1));
	round_on_away(f->c, f->now, true);
	f->now += 1000 * DRIVER_HEARTBEAT_US;
	expect_nothing(f);
}

/* What the others took with them is lacked; what is at hand, or can be made here, is not. */
static void who_is_alone_at_the_end_lacks_donors_or_not(void **state) {
	struct round_driver *f = *state;
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	assert_false(round_lacks_donors(f->c));
	make_ready(f, FIXTURE_ROUNDS - 1);
	reduce_and_vote(f, FIXTURE_ROUNDS - 1, digest_of(FIXTURE_ROUNDS - 1));
	show_attempt(f, RUN_DONE, FIXTURE_ROUNDS, 0, UINT64_C(1) << FIXTURE_SELF);
	assert_false(round_lacks_donors(f->c)); /* its own vote: nothing is fetched */
	expect_next(f, ROUND_REDUCE_STOP);
	expect_next(f, ROUND_APPLY);
	assert_false(round_lacks_donors(f->c));
	apply_ok(f, FIXTURE_ROUNDS - 1);
	assert_false(round_lacks_donors(f->c));
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	show_attempt(f, RUN_DONE, FIXTURE_ROUNDS, 0, UINT64_C(1) << FIXTURE_SELF);
	assert_true(round_lacks_donors(f->c));
	expect_next(f, ROUND_FETCH_LOG); /* perhaps the own disk has it */
	show(f, RUN_DONE, FIXTURE_ROUNDS);
	assert_false(round_lacks_donors(f->c));
	expect_nothing(f);
}

/* The document of the end with a snapshot of the end. */
static enum rv_err show_vouched_end(struct round_driver *f) {
	document_make(&f->doc, ++f->seq, RUN_DONE, FIXTURE_ROUNDS, FIXTURE_ROUNDS);
	document_members(&f->doc, EVERYBODY);
	return round_on_document(f->c, &f->doc, NULL);
}

static void a_verified_end_finishes_at_once(void **state) {
	struct round_driver *f = *state;
	start_with(f, FIXTURE_ROUNDS, 0, LATE_KEEP);
	struct rv_hash mine = full_at(FIXTURE_ROUNDS);
	show_vouched_end(f);
	round_on_away(f->c, f->now, true); /* it is not needed for what follows */
	f->now += 3 * DRIVER_HEARTBEAT_US;
	expect_nothing(f); /* our own hash is still being computed */
	assert_int_equal(round_on_full_hash(f->c, FIXTURE_ROUNDS, &mine, NULL), RV_OK);
	expect_next(f, ROUND_FINISH);
	assert_true(round_end_verified(f->c));
}

static void a_wrong_end_is_fetched_from_peers(void **state) {
	struct round_driver *f = *state;
	start_with(f, FIXTURE_ROUNDS, 0, LATE_KEEP);
	struct rv_hash bad = full_at(0);
	assert_int_equal(round_on_full_hash(f->c, FIXTURE_ROUNDS, &bad, NULL), RV_OK);
	assert_int_equal(show_vouched_end(f), RV_E_CORRUPT);
	expect_next(f, ROUND_FETCH_SNAPSHOT);
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, FIXTURE_ROUNDS, true);
	expect_next(f, ROUND_FINISH);
	assert_true(round_end_verified(f->c)); /* what was installed is what is vouched for */
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, round_script_setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		T(done_applies_the_last_round_first),  T(a_coordinator_that_ended_is_waited_for_less),
		T(a_commit_is_waited_for_without_end), T(who_is_alone_at_the_end_lacks_donors_or_not),
		T(a_verified_end_finishes_at_once),    T(a_wrong_end_is_fetched_from_peers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
