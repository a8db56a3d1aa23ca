/* test_worker_store_job.c: which steps a job of the storage thread takes, and what a failing step
 * means for the next. */
#include "tests/common/check.h"
#include "worker/state/store_job.h"

#include <string.h>

static int any_copy; /* what a handle points to: never looked into */

static struct store_job copy(bool snapshot, bool replica) {
	return (struct store_job){.kind = STORE_COPY,
							  .copy = {.handle = &any_copy, .has_snapshot = snapshot, .has_replica = replica}};
}

/* The job takes exactly these steps, of which `failing` (or none: STORE_STEP_END) fails; its
 * end. */
static enum rv_err take(struct store_thread *t, struct store_job *j, enum store_step failing, int n,
						const enum store_step *steps) {
	struct rv_errtext text = {.text = "refused"};
	store_job_begin(t, j);
	for (int i = 0; i < n; i++) {
		assert_int_equal(j->step, steps[i]);
		bool fails = j->step == failing;
		store_job_did(t, j, fails ? RV_E_FULL : RV_OK, &text);
	}
	assert_int_equal(j->step, STORE_STEP_END);
	return j->err;
}
#define TAKE(t, j, failing, ...)                                                                                       \
	take(t, j, failing, sizeof((enum store_step[]){__VA_ARGS__}) / sizeof(enum store_step),                            \
		 (const enum store_step[]){__VA_ARGS__})

static void test_replica_then_snapshot_then_retention(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job both = copy(true, true), replica = copy(false, true), snapshot = copy(true, false);
	assert_int_equal(TAKE(&t, &both, STORE_STEP_END, STORE_STEP_REPLICA, STORE_STEP_SNAPSHOT, STORE_STEP_PRUNE), RV_OK);
	assert_int_equal(TAKE(&t, &replica, STORE_STEP_END, STORE_STEP_REPLICA), RV_OK);
	assert_int_equal(TAKE(&t, &snapshot, STORE_STEP_END, STORE_STEP_SNAPSHOT, STORE_STEP_PRUNE), RV_OK);
}

static void test_nothing_is_pruned_for_a_snapshot_that_is_not_there(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job j = copy(true, true);
	assert_int_equal(TAKE(&t, &j, STORE_STEP_SNAPSHOT, STORE_STEP_REPLICA, STORE_STEP_SNAPSHOT), RV_E_FULL);
	assert_string_equal(j.text.text, "refused");
}

static void test_a_snapshot_is_written_whatever_became_of_the_replica(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job j = copy(true, true);
	assert_int_equal(TAKE(&t, &j, STORE_STEP_REPLICA, STORE_STEP_REPLICA, STORE_STEP_SNAPSHOT, STORE_STEP_PRUNE),
					 RV_E_FULL);
}

static struct store_job persist(struct blob *reduced) {
	return (struct store_job){.kind = STORE_PERSIST, .reduced = reduced};
}

/* Entries were fetched that the disk did not take; it may hold those of attempts that failed, which
 * what is written from now on would seem to prove. */
static void test_entries_of_failed_attempts_go_before_anything_is_written(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct blob *reduced = blob_new(1);
	struct store_job lost = {.kind = STORE_LOST, .round = 5}, next = {.kind = STORE_LOST, .round = 6};
	struct store_job refused = persist(reduced), kept = copy(true, true), vote = persist(reduced), again = vote;
	assert_int_equal(TAKE(&t, &lost, STORE_STEP_REMOVE_LOG, STORE_STEP_REMOVE_LOG), RV_E_FULL);
	assert_int_equal(TAKE(&t, &next, STORE_STEP_REMOVE_LOG, STORE_STEP_REMOVE_LOG), RV_E_FULL);
	assert_true(t.stale == 5 && t.n_stale == 2);
	assert_int_equal(TAKE(&t, &refused, STORE_STEP_REMOVE_LOG, STORE_STEP_REMOVE_LOG), RV_E_FULL);
	assert_int_equal(TAKE(&t, &kept, STORE_STEP_REMOVE_LOG, STORE_STEP_REMOVE_LOG, STORE_STEP_HASH), RV_E_FULL);
	assert_int_equal(TAKE(&t, &vote, STORE_STEP_END, STORE_STEP_REMOVE_LOG, STORE_STEP_REMOVE_LOG, STORE_STEP_LOG),
					 RV_OK);
	assert_int_equal(TAKE(&t, &again, STORE_STEP_END, STORE_STEP_LOG), RV_OK);
	blob_unref(reduced);
}

/* What encoding the means left is there before the entry that makes it count; without it there is
 * no vote. */
static void test_what_means_left_comes_before_the_vote(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct blob *reduced = blob_new(1), *left = blob_new(1);
	struct store_job vote = persist(reduced), refused, stale, lost = {.kind = STORE_LOST, .round = 5};
	vote.left = left;
	refused = stale = vote;
	assert_int_equal(TAKE(&t, &vote, STORE_STEP_END, STORE_STEP_MEANS, STORE_STEP_LOG), RV_OK);
	assert_int_equal(TAKE(&t, &refused, STORE_STEP_MEANS, STORE_STEP_MEANS), RV_E_FULL);
	(void)TAKE(&t, &lost, STORE_STEP_REMOVE_LOG, STORE_STEP_REMOVE_LOG);
	assert_int_equal(TAKE(&t, &stale, STORE_STEP_END, STORE_STEP_REMOVE_LOG, STORE_STEP_MEANS, STORE_STEP_LOG), RV_OK);
	blob_unref(reduced);
	blob_unref(left);
}

/* A replica of a round that was taken back would seem to prove what is voted for from now on. */
static void test_a_replica_that_is_ahead_goes_where_none_takes_its_place(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job none = copy(true, false), takes_its_place = copy(false, true), no_memory = none;
	none.replica_ahead = takes_its_place.replica_ahead = no_memory.replica_ahead = true;
	no_memory.copy = (struct state_copy){.err = RV_E_NOMEM};
	(void)TAKE(&t, &none, STORE_STEP_END, STORE_STEP_REMOVE_REPLICA, STORE_STEP_SNAPSHOT, STORE_STEP_PRUNE);
	(void)TAKE(&t, &takes_its_place, STORE_STEP_END, STORE_STEP_REPLICA);
	assert_int_equal(TAKE(&t, &no_memory, STORE_STEP_END, STORE_STEP_REMOVE_REPLICA), RV_E_NOMEM);
}

static void test_nothing_is_stored_beside_another_history(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job install = {.kind = STORE_INSTALLED}, again = install, j = copy(true, true), then = j;
	assert_int_equal(TAKE(&t, &install, STORE_STEP_FORGET, STORE_STEP_FORGET), RV_E_FULL);
	assert_true(t.other_history);
	assert_int_equal(TAKE(&t, &j, STORE_STEP_END, STORE_STEP_HASH), RV_E_IO); /* its hash is told all the same */
	assert_int_equal(TAKE(&t, &again, STORE_STEP_END, STORE_STEP_FORGET, STORE_STEP_ADOPT), RV_OK);
	assert_int_equal(TAKE(&t, &then, STORE_STEP_END, STORE_STEP_REPLICA, STORE_STEP_SNAPSHOT, STORE_STEP_PRUNE), RV_OK);
}

static void test_a_forgetting_that_was_never_posted_counts(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job j = copy(false, true);
	j.after_lost_forget = true;
	store_job_begin(&t, &j);
	assert_int_equal(j.step, STORE_STEP_END);
	assert_int_equal(j.err, RV_E_IO);
}

static void test_theta0_has_no_part_to_adopt(void **state) {
	(void)state;
	struct store_thread t = {.other_history = false};
	struct store_job j = {.kind = STORE_INSTALLED};
	struct rv_errtext text = {.text = "there is none"};
	store_job_begin(&t, &j);
	store_job_did(&t, &j, RV_OK, &text);
	store_job_did(&t, &j, RV_E_NOTFOUND, &text);
	assert_int_equal(j.step, STORE_STEP_END);
	assert_int_equal(j.err, RV_OK);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replica_then_snapshot_then_retention),
		cmocka_unit_test(test_nothing_is_pruned_for_a_snapshot_that_is_not_there),
		cmocka_unit_test(test_a_snapshot_is_written_whatever_became_of_the_replica),
		cmocka_unit_test(test_entries_of_failed_attempts_go_before_anything_is_written),
		cmocka_unit_test(test_what_means_left_comes_before_the_vote),
		cmocka_unit_test(test_a_replica_that_is_ahead_goes_where_none_takes_its_place),
		cmocka_unit_test(test_nothing_is_stored_beside_another_history),
		cmocka_unit_test(test_a_forgetting_that_was_never_posted_counts),
		cmocka_unit_test(test_theta0_has_no_part_to_adopt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
