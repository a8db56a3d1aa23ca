/* test_worker_round_overlap.c: the round core with steps of the next round ahead: the outer step
 * has one place among them, in whatever order commit, steps, deaths and restarts come. */
#include "round_driver.h"
#include "tests/common/check.h"

enum { EVERYBODY = 0xf, WITHOUT_US = 0x3, AHEAD = 2, TOKENS = 100 };

/* A process that begins in `round`, with these steps of it. */
static void start_with(struct round_driver *f, uint64_t round, uint64_t steps_done, uint64_t ahead,
					   enum late_policy late) {
	round_driver_start(f, (struct round_config){.overlap_steps = ahead, .gives_away = f->gives_away, .late = late},
					   round, steps_done);
	driver_trained(f, round, steps_done, steps_done == FIXTURE_H ? TOKENS : 0);
}

static int setup(void **state) {
	round_driver_setup(state);
	start_with(*state, 0, 0, AHEAD, LATE_KEEP);
	return 0;
}

static void show_attempt(struct round_driver *f, uint64_t round, uint32_t attempt, uint64_t members) {
	document_make(&f->doc, ++f->seq, attempt > 0 ? RUN_REDUCE : RUN_OPEN, round, 0);
	f->doc.attempt = attempt;
	document_members(&f->doc, members);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
}

static void open_round(struct round_driver *f, uint64_t round) {
	show_attempt(f, round, 0, EVERYBODY);
}

static void expect_train(struct round_driver *f, uint64_t round, uint64_t from, uint64_t steps) {
	struct round_action a = expect_action(f, ROUND_TRAIN, round);
	assert_int_equal(a.from, from);
	assert_int_equal(a.steps, steps);
}

static struct report expect_report(struct round_driver *f, enum worker_phase phase, uint64_t round) {
	struct report r = report_of(f);
	struct rv_hash chain = chain_at(round);
	assert_int_equal(r.phase, phase);
	assert_int_equal(r.round, round);
	if (phase != WORKER_SYNCING)
		assert_memory_equal(r.chain.b, chain.b, sizeof chain.b);
	return r;
}

/* Up to the encoded outer gradient; the steps ahead are under way. */
static void make_ready(struct round_driver *f, uint64_t round, uint64_t from) {
	open_round(f, round);
	expect_train(f, round, from, FIXTURE_H - from);
	driver_trained(f, round, FIXTURE_H, TOKENS);
	expect_action(f, ROUND_ENCODE, round);
	driver_encoded(f->c, round);
	expect_train(f, round + 1, 0, AHEAD);
	expect_nothing(f);
	assert_int_equal(expect_report(f, WORKER_READY, round).tokens, TOKENS);
}

static void persisted(struct round_driver *f, uint64_t round, uint32_t attempt, uint64_t as_if_of) {
	struct rv_hash digest = digest_of(as_if_of);
	round_on_persisted(f->c, f->now, round, attempt, &digest, true);
}

/* `first`: the action that begins it. */
static void reduce_and_vote(struct round_driver *f, uint64_t round, uint32_t attempt, enum round_action_type first) {
	show_attempt(f, round, attempt, EVERYBODY);
	expect_action(f, first, round);
	expect_report(f, WORKER_REDUCING, round);
	round_on_reduced(f->c, round, attempt);
	expect_action(f, ROUND_PERSIST, round);
	persisted(f, round, attempt, round);
	expect_nothing(f);
	assert_int_equal(expect_report(f, WORKER_VOTED, round).attempt, attempt);
}

static void trained_ahead(struct round_driver *f, uint64_t round, uint64_t steps) {
	driver_trained(f, round + 1, steps, 10 * steps);
}

static void expect_apply(struct round_driver *f, uint64_t round, bool participated) {
	struct round_action a = expect_action(f, ROUND_APPLY, round);
	struct rv_hash digest = digest_of(round);
	assert_int_equal(a.participated, participated);
	assert_memory_equal(a.expect.b, digest.b, sizeof digest.b);
	expect_nothing(f);
}

static void applied(struct round_driver *f, uint64_t round) {
	struct rv_hash chain = chain_at(round + 1);
	driver_applied(f, round, &chain, true);
}

/* Round 0 with our vote is committed while its steps ahead are under way. */
static void see_an_early_commit(struct round_driver *f) {
	make_ready(f, 0, 0);
	reduce_and_vote(f, 0, 1, ROUND_REDUCE_START);
	open_round(f, 1);
	expect_action(f, ROUND_REDUCE_STOP, 0);
}

/* ---- nobody is late ---- */

static void an_early_commit_waits_for_the_steps_ahead(void **state) {
	struct round_driver *f = *state;
	see_an_early_commit(f);
	expect_nothing(f);
	/* It has the committed bytes, and trains: nobody has to bring it anything, nor to wait for it
	 * longer than for others. */
	expect_report(f, WORKER_TRAINING, 1);
	trained_ahead(f, 0, AHEAD - 1);
	expect_nothing(f);
	trained_ahead(f, 0, AHEAD);
	expect_apply(f, 0, true);
	assert_int_equal(expect_report(f, WORKER_TRAINING, 1).tokens, 10 * AHEAD);
	applied(f, 0);
	assert_int_equal(round_round(f->c), 1);
	expect_train(f, 1, AHEAD, FIXTURE_H - AHEAD);
	expect_report(f, WORKER_TRAINING, 1);
}

static void steps_ahead_wait_for_a_late_commit(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0, 0);
	trained_ahead(f, 0, AHEAD);
	expect_nothing(f);
	expect_report(f, WORKER_READY, 0);
	f->now += 3600 * (int64_t)1000000;
	expect_nothing(f);
	document_make(&f->doc, ++f->seq, RUN_WAITING, 0, 0);
	round_on_document(f->c, &f->doc, NULL);
	expect_nothing(f);
	reduce_and_vote(f, 0, 1, ROUND_REDUCE_START);
	open_round(f, 1);
	expect_action(f, ROUND_REDUCE_STOP, 0);
	expect_apply(f, 0, true);
	applied(f, 0);
	open_round(f, 1);
	expect_train(f, 1, AHEAD, FIXTURE_H - AHEAD);
	driver_trained(f, 1, FIXTURE_H, TOKENS);
	expect_action(f, ROUND_ENCODE, 1);
	driver_encoded(f->c, 1);
	expect_train(f, 2, 0, AHEAD);
	assert_int_equal(expect_report(f, WORKER_READY, 1).tokens, TOKENS);
}

static void a_round_may_be_overlapped_as_a_whole(void **state) {
	struct round_driver *f = *state;
	start_with(f, 0, 0, FIXTURE_H, LATE_KEEP);
	open_round(f, 0);
	expect_train(f, 0, 0, FIXTURE_H);
	driver_trained(f, 0, FIXTURE_H, TOKENS);
	expect_action(f, ROUND_ENCODE, 0);
	driver_encoded(f->c, 0);
	expect_train(f, 1, 0, FIXTURE_H);
	reduce_and_vote(f, 0, 1, ROUND_REDUCE_START);
	trained_ahead(f, 0, FIXTURE_H);
	expect_nothing(f); /* no encoding of what peers are still being given */
	open_round(f, 1);
	expect_action(f, ROUND_REDUCE_STOP, 0);
	expect_apply(f, 0, true);
	applied(f, 0);
	expect_action(f, ROUND_ENCODE, 1);
}

static void the_last_round_waits_for_no_steps(void **state) {
	struct round_driver *f = *state;
	const uint64_t last = FIXTURE_ROUNDS - 1;
	start_with(f, last, 0, AHEAD, LATE_KEEP);
	open_round(f, last);
	expect_train(f, last, 0, FIXTURE_H);
	driver_trained(f, last, FIXTURE_H, TOKENS);
	expect_action(f, ROUND_ENCODE, last);
	driver_encoded(f->c, last);
	expect_nothing(f);
	reduce_and_vote(f, last, 1, ROUND_REDUCE_START);
	document_make(&f->doc, ++f->seq, RUN_DONE, last + 1, 0);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	expect_action(f, ROUND_REDUCE_STOP, last);
	expect_apply(f, last, true);
}

static void below_min_workers_a_commit_finds_its_place_all_the_same(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0, 0);
	reduce_and_vote(f, 0, 1, ROUND_REDUCE_START);
	document_make(&f->doc, ++f->seq, RUN_WAITING, 1, 0);
	document_members(&f->doc, WITHOUT_US);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	expect_action(f, ROUND_REDUCE_STOP, 0);
	trained_ahead(f, 0, AHEAD);
	expect_apply(f, 0, true);
	applied(f, 0);
	expect_nothing(f);
	open_round(f, 1);
	expect_train(f, 1, AHEAD, FIXTURE_H - AHEAD);
}

/* ---- deaths ---- */

static void a_later_attempt_is_given_what_the_first_one_was(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0, 0);
	show_attempt(f, 0, 1, EVERYBODY);
	expect_action(f, ROUND_REDUCE_START, 0);
	trained_ahead(f, 0, AHEAD);
	expect_nothing(f);
	reduce_and_vote(f, 0, 2, ROUND_REDUCE_RESTART); /* and no ENCODE */
	open_round(f, 1);
	expect_action(f, ROUND_REDUCE_STOP, 0);
	expect_apply(f, 0, true);
}

static void a_minority_trains_ahead_while_it_fetches(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0, 0);
	show_attempt(f, 0, 1, EVERYBODY);
	expect_action(f, ROUND_REDUCE_START, 0);
	round_on_reduced(f->c, 0, 1);
	expect_action(f, ROUND_PERSIST, 0);
	persisted(f, 0, 1, 99);
	open_round(f, 1);
	expect_action(f, ROUND_REDUCE_STOP, 0);
	expect_action(f, ROUND_FETCH_LOG, 0);
	expect_report(f, WORKER_SYNCING, 0);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_nothing(f);
	expect_report(f, WORKER_TRAINING, 1);
	trained_ahead(f, 0, AHEAD);
	expect_apply(f, 0, true);
}

static void damaged_bytes_are_fetched_and_the_place_stays(void **state) {
	struct round_driver *f = *state;
	struct rv_hash chain = chain_at(1);
	make_ready(f, 0, 0);
	reduce_and_vote(f, 0, 1, ROUND_REDUCE_START);
	trained_ahead(f, 0, AHEAD);
	open_round(f, 1);
	expect_action(f, ROUND_REDUCE_STOP, 0);
	expect_apply(f, 0, true);
	driver_applied(f, 0, &chain, false);
	expect_action(f, ROUND_FETCH_LOG, 0);
	expect_report(f, WORKER_SYNCING, 0);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_apply(f, 0, true);
	applied(f, 0);
	expect_train(f, 1, AHEAD, FIXTURE_H - AHEAD);
}

static void another_state_begins_without_steps_ahead(void **state) {
	struct round_driver *f = *state;
	start_with(f, 6, 0, AHEAD, LATE_KEEP);
	make_ready(f, 6, 0);
	trained_ahead(f, 6, 1);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	struct rv_hash bad = full_at(60);
	(void)round_on_full_hash(f->c, 5, &bad, NULL);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_CORRUPT);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 5);
	trained_ahead(f, 6, 2);
	f->progress = (struct participant_progress){0};
	round_on_fetched(f->c, f->now, ROUND_FETCH_SNAPSHOT, 5, true);
	expect_action(f, ROUND_FETCH_LOG, 5);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 5, true);
	expect_apply(f, 5, false);
	applied(f, 5);
	expect_train(f, 6, 0, FIXTURE_H);
}

/* ---- late ---- */

static void left_out(struct round_driver *f) {
	make_ready(f, 0, 0);
	show_attempt(f, 0, 1, WITHOUT_US);
	expect_nothing(f);
	open_round(f, 1);
	expect_action(f, ROUND_FETCH_LOG, 0);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_apply(f, 0, false); /* at once: its steps count in the next round anyhow */
	trained_ahead(f, 0, 1);
	applied(f, 0);
}

static void who_was_left_out_gives_all_its_steps_to_the_next_round(void **state) {
	struct round_driver *f = *state;
	left_out(f);
	expect_action(f, ROUND_ENCODE, 1);
	driver_encoded(f->c, 1);
	assert_int_equal(expect_report(f, WORKER_READY, 1).tokens, TOKENS + 10);
	expect_train(f, 2, 0, AHEAD);
}

/* With late outer steps the first of the steps ahead takes the contribution out of theta_local. */
static void who_gave_its_steps_away_keeps_those_ahead(void **state) {
	struct round_driver *f = *state;
	f->gives_away = true;
	start_with(f, 0, 0, AHEAD, LATE_KEEP);
	left_out(f);
	expect_train(f, 1, 1, FIXTURE_H - 1);
	assert_int_equal(expect_report(f, WORKER_TRAINING, 1).tokens, 10);
}

static void who_has_not_begun_with_steps_ahead_keeps_all(void **state) {
	struct round_driver *f = *state;
	f->gives_away = true;
	start_with(f, 0, 0, AHEAD, LATE_KEEP);
	make_ready(f, 0, 0);
	show_attempt(f, 0, 1, WITHOUT_US);
	open_round(f, 1);
	expect_action(f, ROUND_FETCH_LOG, 0);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_apply(f, 0, false);
	applied(f, 0);
	expect_action(f, ROUND_ENCODE, 1);
	driver_encoded(f->c, 1);
	assert_int_equal(expect_report(f, WORKER_READY, 1).tokens, TOKENS);
}

/* Averaged without us: going ahead would give away what nobody takes. */
static void who_is_left_out_before_it_goes_ahead_does_not(void **state) {
	struct round_driver *f = *state;
	f->gives_away = true;
	start_with(f, 0, 0, AHEAD, LATE_KEEP);
	open_round(f, 0);
	expect_train(f, 0, 0, FIXTURE_H);
	show_attempt(f, 0, 1, WITHOUT_US);
	driver_trained(f, 0, FIXTURE_H, TOKENS);
	expect_action(f, ROUND_ENCODE, 0);
	driver_encoded(f->c, 0);
	expect_nothing(f);
	open_round(f, 1);
	expect_action(f, ROUND_FETCH_LOG, 0);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_apply(f, 0, false);
	applied(f, 0);
	expect_action(f, ROUND_ENCODE, 1);
	driver_encoded(f->c, 1);
	assert_int_equal(expect_report(f, WORKER_READY, 1).tokens, TOKENS);
	expect_train(f, 2, 0, AHEAD);
}

static void or_discards_them_by_policy(void **state) {
	struct round_driver *f = *state;
	start_with(f, 0, 0, AHEAD, LATE_DISCARD);
	left_out(f);
	expect_train(f, 1, 0, FIXTURE_H);
}

/* The others have committed a later round without it: nobody does its steps in that order any
 * more. */
static void who_is_rounds_behind_does_not_wait(void **state) {
	struct round_driver *f = *state;
	see_an_early_commit(f);
	expect_nothing(f);
	open_round(f, 2);
	expect_report(f, WORKER_SYNCING, 0);
	expect_apply(f, 0, true);
	trained_ahead(f, 0, 1);
	applied(f, 0);
	expect_action(f, ROUND_FETCH_LOG, 1);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 1, true);
	expect_apply(f, 1, false);
	applied(f, 1);
	expect_train(f, 2, 1, FIXTURE_H - 1);
}

/* ---- a process that comes back ---- */

static void a_restart_with_a_vote_trains_the_steps_again(void **state) {
	struct round_driver *f = *state;
	start_with(f, 3, FIXTURE_H, AHEAD, LATE_KEEP);
	persisted(f, 3, 1, 3);
	open_round(f, 4);
	expect_train(f, 4, 0, AHEAD);
	expect_nothing(f);
	expect_report(f, WORKER_TRAINING, 4);
	trained_ahead(f, 3, AHEAD);
	expect_apply(f, 3, true);
	applied(f, 3);
	expect_train(f, 4, AHEAD, FIXTURE_H - AHEAD);
}

static void a_restart_before_the_commit_votes_and_trains_the_steps_again(void **state) {
	struct round_driver *f = *state;
	start_with(f, 3, FIXTURE_H, AHEAD, LATE_KEEP);
	persisted(f, 3, 1, 3);
	show_attempt(f, 3, 1, EVERYBODY);
	expect_report(f, WORKER_VOTED, 3);
	expect_action(f, ROUND_ENCODE, 3);
	driver_encoded(f->c, 3);
	expect_train(f, 4, 0, AHEAD);
	trained_ahead(f, 3, AHEAD);
	expect_nothing(f);
	open_round(f, 4);
	expect_apply(f, 3, true);
}

static void a_restart_after_the_commit_fetches_and_trains_the_steps_again(void **state) {
	struct round_driver *f = *state;
	start_with(f, 3, FIXTURE_H, AHEAD, LATE_KEEP);
	open_round(f, 4);
	expect_action(f, ROUND_FETCH_LOG, 3);
	expect_train(f, 4, 0, AHEAD);
	trained_ahead(f, 3, AHEAD);
	expect_nothing(f);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 3, true);
	expect_apply(f, 3, true);
}

/* Its replica on disk is an older one: the steps that its contribution was made of are gone. */
static void a_restart_without_the_rounds_steps_makes_the_outer_step_at_once(void **state) {
	struct round_driver *f = *state;
	start_with(f, 3, 2, AHEAD, LATE_KEEP);
	persisted(f, 3, 1, 3);
	open_round(f, 4);
	expect_apply(f, 3, true);
	applied(f, 3);
	expect_train(f, 4, 0, FIXTURE_H);
}

static void leaving_asks_for_no_steps(void **state) {
	struct round_driver *f = *state;
	see_an_early_commit(f);
	round_leave(f->c);
	trained_ahead(f, 0, AHEAD);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_early_commit_waits_for_the_steps_ahead),
		TEST(steps_ahead_wait_for_a_late_commit),
		TEST(a_round_may_be_overlapped_as_a_whole),
		TEST(who_gave_its_steps_away_keeps_those_ahead),
		TEST(who_has_not_begun_with_steps_ahead_keeps_all),
		TEST(who_is_left_out_before_it_goes_ahead_does_not),
		TEST(the_last_round_waits_for_no_steps),
		TEST(below_min_workers_a_commit_finds_its_place_all_the_same),
		TEST(a_later_attempt_is_given_what_the_first_one_was),
		TEST(a_minority_trains_ahead_while_it_fetches),
		TEST(damaged_bytes_are_fetched_and_the_place_stays),
		TEST(another_state_begins_without_steps_ahead),
		TEST(who_was_left_out_gives_all_its_steps_to_the_next_round),
		TEST(or_discards_them_by_policy),
		TEST(who_is_rounds_behind_does_not_wait),
		TEST(a_restart_with_a_vote_trains_the_steps_again),
		TEST(a_restart_before_the_commit_votes_and_trains_the_steps_again),
		TEST(a_restart_after_the_commit_fetches_and_trains_the_steps_again),
		TEST(a_restart_without_the_rounds_steps_makes_the_outer_step_at_once),
		TEST(leaving_asks_for_no_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
