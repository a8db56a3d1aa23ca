/* test_worker_round_resync.c: a worker whose state is not the run's, or may not be: it takes a
 * snapshot, or is shown to need none; and who holds the state helps the others out of a
 * standstill. */
#include "round_script.h"
#include "tests/common/check.h"

#include <string.h>

static void a_fork_resyncs_from_the_snapshot(void **state) {
	struct round_driver *f = *state;
	struct rv_hash wrong = digest_of(5);
	const struct round_config cfg = {
		.member = FIXTURE_SELF, .steps_per_round = FIXTURE_H, .heartbeat_us = DRIVER_HEARTBEAT_US};
	f->c = round_core_init(f->c, &cfg, 1, 6, &wrong, &f->progress, f->now);
	document_make(&f->doc, 1, RUN_OPEN, 7, 4);
	document_members(&f->doc, EVERYBODY);
	struct rv_errtext et = {0};
	assert_int_equal(round_on_document(f->c, &f->doc, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "round 6"));
	struct round_action a = expect_next(f, ROUND_FETCH_SNAPSHOT);
	struct rv_hash full = full_at(4);
	assert_int_equal(a.round, 4);
	assert_true(rv_hash_equal(&a.expect, &full));
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 4, true);
	assert_int_equal(expect_next(f, ROUND_FETCH_LOG).round, 4);
	assert_int_equal(expect_report(f, WORKER_SYNCING).round, 4);
}

static void too_far_behind_needs_a_snapshot(void **state) {
	struct round_driver *f = *state;
	document_make(&f->doc, 1, RUN_OPEN, 12, 10);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	assert_int_equal(expect_next(f, ROUND_FETCH_SNAPSHOT).round, 10);
	uint64_t before = expect_report(f, WORKER_SYNCING).boot;
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 10, true);
	assert_int_equal(expect_next(f, ROUND_FETCH_LOG).round, 10);
	/* What peers may still hold of its contributions is void. */
	assert_int_equal(expect_report(f, WORKER_SYNCING).boot, before + 1);
	assert_int_equal(round_boot(f->c), before + 1);
}

static void a_fork_before_any_snapshot_starts_from_theta0(void **state) {
	struct round_driver *f = *state;
	struct rv_hash full = full_at(7);
	start_with(f, 2, 0, LATE_KEEP);
	show(f, RUN_OPEN, 2);
	expect_next(f, ROUND_TRAIN);
	(void)full;
	/* Two damaged log entries in a row: the state itself is in doubt. */
	show(f, RUN_OPEN, 3);
	for (int i = 0; i < 2; i++) {
		expect_next(f, ROUND_FETCH_LOG);
		round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 2, true);
		expect_next(f, ROUND_APPLY);
		driver_applied(f, 2, &full, false);
	}
	struct round_action a = expect_next(f, ROUND_FETCH_SNAPSHOT);
	assert_int_equal(a.round, 0);
	assert_true(a.made_here);
	assert_int_equal(round_deadline_us(f->c) < INT64_MAX, true);
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 0, true);
	assert_int_equal(expect_next(f, ROUND_FETCH_LOG).round, 0);
}

static void a_full_hash_unlike_the_majoritys_resyncs(void **state) {
	struct round_driver *f = *state;
	start_with(f, 6, 0, LATE_KEEP);
	document_make(&f->doc, 1, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	round_on_document(f->c, &f->doc, NULL);
	struct rv_hash good = full_at(5), bad = full_at(6);
	assert_int_equal(round_on_full_hash(f->c, 5, &good, NULL), RV_OK);
	expect_next(f, ROUND_TRAIN);
	assert_int_equal(expect_report(f, WORKER_TRAINING).full_round, 5);
	assert_int_equal(round_on_full_hash(f->c, 5, &bad, NULL), RV_E_CORRUPT);
	expect_next(f, ROUND_FETCH_SNAPSHOT);
	expect_report(f, WORKER_SYNCING);
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 5, true);
	expect_next(f, ROUND_FETCH_LOG);
}

/* A run that starts from given weights: a worker without them asks a peer for the state of round 0,
 * and the one with them that has diverged does too. */
static void the_first_state_may_come_from_a_peer(void **state) {
	struct round_driver *f = *state;
	round_driver_start(f, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .theta0_from_peers = true}, 0, 0);
	round_lacks_state(f->c);
	show_attempt(f, RUN_WAITING, 0, 0, 0);
	struct round_action a = expect_next(f, ROUND_FETCH_SNAPSHOT); /* nobody is there; the own disk is */
	expect_report(f, WORKER_SYNCING);
	show(f, RUN_OPEN, 0);
	expect_nothing(f); /* it is being fetched */
	assert_int_equal(a.round, 0);
	assert_false(a.made_here);
	assert_true(rv_hash_is_zero(&a.expect));
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 0, true);
	expect_next(f, ROUND_TRAIN);
	assert_int_equal(expect_report(f, WORKER_TRAINING).full_round, 0);
}

/* The majority's word on round 5 comes when our own hash of round 6 is already there. */
static void an_earlier_full_hash_is_compared_too(void **state) {
	struct round_driver *f = *state;
	start_with(f, 6, 0, LATE_KEEP);
	struct rv_hash bad = full_at(50), later = full_at(60);
	assert_int_equal(round_on_full_hash(f->c, 5, &bad, NULL), RV_OK);
	assert_int_equal(round_on_full_hash(f->c, 6, &later, NULL), RV_OK);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_CORRUPT);
	expect_next(f, ROUND_FETCH_SNAPSHOT);
	assert_int_equal(expect_report(f, WORKER_SYNCING).full_round, 6);
}

static void a_full_hash_of_a_state_that_was_given_up_is_ignored(void **state) {
	struct round_driver *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	struct rv_hash bad = full_at(60);
	assert_int_equal(round_on_full_hash(f->c, 6, &bad, NULL), RV_OK);
	show(f, RUN_OPEN, 5);
	assert_int_equal(expect_report(f, WORKER_TRAINING).full_round, 0);
}

static void a_vote_for_the_last_step_to_a_snapshot_needs_no_snapshot(void **state) {
	struct round_driver *f = *state;
	start_with(f, 4, 0, LATE_KEEP);
	make_ready(f, 4);
	reduce_and_vote(f, 4, digest_of(4));
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	expect_next(f, ROUND_REDUCE_STOP);
	assert_hash(expect_next(f, ROUND_APPLY).expect, digest_of(4));
	apply_ok(f, 4);
	assert_int_equal(expect_next(f, ROUND_FETCH_LOG).round, 5);
}

static void a_vote_that_lost_does_not_lead_to_the_snapshot(void **state) {
	struct round_driver *f = *state;
	start_with(f, 4, 0, LATE_KEEP);
	make_ready(f, 4);
	reduce_and_vote(f, 4, digest_of(40));
	document_make(&f->doc, ++f->seq, RUN_OPEN, 5, 5);
	document_members(&f->doc, EVERYBODY);
	round_on_document(f->c, &f->doc, NULL);
	expect_next(f, ROUND_REDUCE_STOP);
	assert_int_equal(expect_next(f, ROUND_FETCH_SNAPSHOT).round, 5);
}

static void a_new_snapshot_forgets_the_vote_on_the_old_history(void **state) {
	struct round_driver *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	document_make(&f->doc, 1, RUN_OPEN, 5, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	struct rv_hash digest = digest_of(5), bad = full_at(6);
	round_on_persisted(f->c, f->now, 5, 1, &digest, true);
	assert_int_equal(round_on_full_hash(f->c, 5, &bad, NULL), RV_E_CORRUPT);
	expect_next(f, ROUND_FETCH_SNAPSHOT);
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 5, true);
	document_make(&f->doc, 2, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	assert_int_equal(expect_next(f, ROUND_FETCH_LOG).round, 5); /* not APPLY: the log went with the old history */
}

static void a_newer_snapshot_supersedes_the_fetch(void **state) {
	struct round_driver *f = *state;
	struct round_action next;
	document_make(&f->doc, 1, RUN_OPEN, 12, 10);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	struct round_action a = expect_next(f, ROUND_FETCH_SNAPSHOT);
	assert_hash(a.chain, chain_at(10));
	assert_true(round_fetch_after(f->c, &a, &next) && next.round == 10);
	document_make(&f->doc, 2, RUN_OPEN, 15, 15);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	a = expect_next(f, ROUND_FETCH_SNAPSHOT);
	assert_int_equal(a.round, 15);
	assert_false(round_fetch_after(f->c, &a, &next));
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 10, true); /* late: of the one before */
	expect_nothing(f);
}

/* Its contribution to round 6 is on its way when it finds that its state of round 6 is not the
 * run's. What it trains of that round after the snapshot is the same data again, and the round is
 * committed with what it gave before. */
static void what_was_given_before_a_snapshot_is_not_given_again(void **state) {
	struct round_driver *f = *state;
	start_with(f, 6, 0, LATE_KEEP);
	make_ready(f, 6);
	show_attempt(f, RUN_REDUCE, 6, 1, EVERYBODY);
	expect_next(f, ROUND_REDUCE_START);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 7, 6);
	document_members(&f->doc, EVERYBODY);
	struct rv_hash bad = full_at(60);
	assert_int_equal(round_on_full_hash(f->c, 6, &bad, NULL), RV_OK);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_CORRUPT);
	expect_next(f, ROUND_REDUCE_STOP);
	expect_next(f, ROUND_FETCH_SNAPSHOT);
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 6, true);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 6, true);
	assert_true(expect_next(f, ROUND_APPLY).participated);
	apply_ok(f, 6);
	expect_next(f, ROUND_TRAIN); /* round 7: it has given nothing to that one */
	show(f, RUN_OPEN, 8);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 7, true);
	assert_false(expect_next(f, ROUND_APPLY).participated);
}

/* An open document in which only this worker has the state, and member 5 lacks it. */
static void show_standstill(struct round_driver *f, uint64_t round) {
	struct document d;
	document_make(&d, ++f->seq, RUN_OPEN, round, 0);
	document_members(&d, UINT64_C(1) << FIXTURE_SELF);
	d.n_syncing = 1;
	d.syncing[0] = (struct member_ref){.member = 5, .n_candidates = 1, .candidates[0].addr = "127.0.0.1:1"};
	assert_int_equal(round_on_document(f->c, &d, NULL), RV_OK);
}

/* What the others cannot fetch is written anew from memory, and not before they had time; again
 * after longer ones. */
static void who_holds_the_state_in_a_standstill_writes_it_anew(void **state) {
	struct round_driver *f = *state;
	round_driver_start(f, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .min_workers = 2}, 3, 0);
	make_ready(f, 3);
	show_standstill(f, 3);
	expect_nothing(f);
	f->now += 14 * DRIVER_HEARTBEAT_US;
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	assert_int_equal(expect_next(f, ROUND_KEEP_SNAPSHOT).round, 3);
	struct rv_hash full = full_at(3);
	assert_int_equal(round_on_full_hash(f->c, 3, &full, NULL), RV_OK);
	for (int wait = 60; wait <= 240; wait *= 4) {
		f->now += (wait - 1) * DRIVER_HEARTBEAT_US;
		expect_nothing(f);
		f->now += DRIVER_HEARTBEAT_US;
		assert_int_equal(expect_next(f, ROUND_KEEP_SNAPSHOT).round, 3);
	}
	assert_int_equal(expect_report(f, WORKER_READY).full_round, 3);
}

/* Its full hash was told, and vouched for; but when it was to be written the disk was full. */
static void a_snapshot_that_is_known_may_be_on_no_disk(void **state) {
	struct round_driver *f = *state;
	round_driver_start(f, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .min_workers = 2}, 3, 0);
	make_ready(f, 3);
	struct rv_hash full = full_at(3);
	assert_int_equal(round_on_full_hash(f->c, 3, &full, NULL), RV_OK);
	show_standstill(f, 3);
	expect_nothing(f);
	f->now += 59 * DRIVER_HEARTBEAT_US;
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	assert_int_equal(expect_next(f, ROUND_KEEP_SNAPSHOT).round, 3);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, round_script_setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		T(a_fork_resyncs_from_the_snapshot),
		T(too_far_behind_needs_a_snapshot),
		T(a_fork_before_any_snapshot_starts_from_theta0),
		T(a_full_hash_unlike_the_majoritys_resyncs),
		T(the_first_state_may_come_from_a_peer),
		T(an_earlier_full_hash_is_compared_too),
		T(a_full_hash_of_a_state_that_was_given_up_is_ignored),
		T(a_vote_for_the_last_step_to_a_snapshot_needs_no_snapshot),
		T(a_vote_that_lost_does_not_lead_to_the_snapshot),
		T(a_new_snapshot_forgets_the_vote_on_the_old_history),
		T(a_newer_snapshot_supersedes_the_fetch),
		T(what_was_given_before_a_snapshot_is_not_given_again),
		T(who_holds_the_state_in_a_standstill_writes_it_anew),
		T(a_snapshot_that_is_known_may_be_on_no_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
