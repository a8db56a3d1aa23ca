/* test_worker_round_unable.c: a worker that cannot give what it has trained: a gradient of no use,
 * a disk that is full. The others go on without it, and it comes back. */
#include "round_script.h"
#include "tests/common/check.h"

static void a_gradient_that_is_not_finite_is_trained_again(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 0);
	expect_next(f, ROUND_TRAIN);
	driver_trained(f, 0, FIXTURE_H, 9);
	expect_next(f, ROUND_ENCODE);
	round_on_encoded(f->c, 0, NULL);
	struct report r = expect_report(f, WORKER_SYNCING); /* nobody waits for it */
	struct rv_hash chain = chain_at(0);
	assert_int_equal(r.proven_round, 0);
	assert_memory_equal(&r.proven_chain, &chain, sizeof chain);
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H);
	driver_trained(f, 0, 2, 9);
	round_on_spoiled(f->c, 1); /* no round of ours */
	expect_nothing(f);
	round_on_spoiled(f->c, 0); /* again, while it trains */
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H);
	driver_trained(f, 0, FIXTURE_H, 9);
	expect_next(f, ROUND_ENCODE);
	driver_encoded(f->c, 0);
	expect_report(f, WORKER_READY);
}

/* Its former process had voted: still it is this state that the run asks for. */
static void a_gradient_of_no_use_leaves_the_state_proven(void **state) {
	struct round_driver *f = *state;
	struct rv_hash digest = digest_of(3), held = chain_at(3);
	start_with(f, 3, FIXTURE_H, LATE_KEEP);
	round_on_persisted(f->c, f->now, 3, 1, &digest, true);
	show(f, RUN_OPEN, 3);
	expect_next(f, ROUND_ENCODE);
	round_on_encoded(f->c, 3, NULL);
	struct report r = expect_report(f, WORKER_SYNCING);
	assert_int_equal(r.proven_round, 3);
	assert_memory_equal(&r.proven_chain, &held, sizeof held);
	show(f, RUN_OPEN, 4); /* what it had given before is in it */
	r = expect_report(f, WORKER_SYNCING);
	assert_int_equal(r.proven_round, 4);
}

static void a_gradient_of_no_use_is_late(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 0);
	expect_next(f, ROUND_TRAIN);
	round_on_spoiled(f->c, 0);
	expect_next(f, ROUND_TRAIN);
	driver_trained(f, 0, 1, 9);
	show(f, RUN_OPEN, 1); /* committed without it */
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_false(expect_next(f, ROUND_APPLY).participated);
	apply_ok(f, 0);
	expect_report(f, WORKER_TRAINING);
}

/* Up to the result of round 0, which the disk does not take. */
static void meet_a_full_disk(struct round_driver *f) {
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_REDUCE_START);
	round_on_reduced(f->c, 0, 1);
	expect_next(f, ROUND_PERSIST);
	round_on_persisted(f->c, f->now, 0, 1, &(struct rv_hash){0}, false);
}

static void a_full_disk_lets_the_others_go_on(void **state) {
	struct round_driver *f = *state;
	meet_a_full_disk(f);
	assert_int_equal(expect_report(f, WORKER_LEAVING).storage, REPORT_STORAGE_ROUNDS);
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	expect_next(f, ROUND_PERSIST);
	struct rv_hash digest = digest_of(0);
	round_on_persisted(f->c, f->now, 0, 1, &digest, true);
	assert_int_equal(expect_report(f, WORKER_VOTED).storage, 0);
}

/* It was left out, and the others are too few without it: it must come back when there may be room
 * again. */
static void a_disk_that_was_full_is_tried_again_in_the_next_attempt(void **state) {
	struct round_driver *f = *state;
	meet_a_full_disk(f);
	show(f, RUN_WAITING, 0);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
	f->now += DRIVER_HEARTBEAT_US;
	expect_next(f, ROUND_PROBE);
	expect_nothing(f);
	assert_int_equal(expect_report(f, WORKER_READY).storage, REPORT_STORAGE_ROUNDS);
	round_on_storage(f->c, f->now, false);
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	expect_next(f, ROUND_PROBE);
	assert_int_equal(expect_report(f, WORKER_READY).storage, REPORT_STORAGE_ROUNDS);
	round_on_storage(f->c, f->now, true);
	assert_int_equal(expect_report(f, WORKER_READY).storage, 0); /* at once */
	f->now += DRIVER_HEARTBEAT_US;
	expect_nothing(f);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, round_script_setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		T(a_gradient_that_is_not_finite_is_trained_again),
		T(a_gradient_of_no_use_leaves_the_state_proven),
		T(a_gradient_of_no_use_is_late),
		T(a_full_disk_lets_the_others_go_on),
		T(a_disk_that_was_full_is_tried_again_in_the_next_attempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
