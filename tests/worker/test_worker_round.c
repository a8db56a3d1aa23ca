/* test_worker_round.c: the worker's round core, rule by rule. */
#include "round_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEARTBEAT_US = 1000, EVERYBODY = 0xf };

struct fixture {
	struct round_core *c;
	struct document doc;
	uint64_t seq;
	int64_t now;
};

static void start_with(struct fixture *f, uint64_t round, uint64_t steps_done, enum late_policy late) {
	struct round_config cfg = {.member = FIXTURE_SELF,
							   .steps_per_round = FIXTURE_H,
							   .n_chunks = {FIXTURE_CHUNKS},
							   .late = late,
							   .heartbeat_us = HEARTBEAT_US};
	struct rv_hash chain = chain_at(round);
	f->c = round_core_init(f->c, &cfg, 77, round, &chain, steps_done, f->now);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	f->c = malloc(round_core_size());
	f->now = 1;
	start_with(f, 0, 0, LATE_KEEP);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	free(f->c);
	free(f);
	return 0;
}

static enum rv_err show_attempt(struct fixture *f, enum run_phase phase, uint64_t round, uint32_t attempt,
								uint64_t members) {
	document_make(&f->doc, ++f->seq, phase, round, 0);
	f->doc.attempt = attempt;
	document_members(&f->doc, members);
	return round_on_document(f->c, f->now, &f->doc, NULL);
}

static enum rv_err show(struct fixture *f, enum run_phase phase, uint64_t round) {
	return show_attempt(f, phase, round, phase == RUN_REDUCE, EVERYBODY);
}

static struct round_action expect_action(struct fixture *f, enum round_action_type type) {
	struct round_action a = {0};
	bool any = round_next_action(f->c, f->now, &a);
	assert_true(any);
	assert_int_equal(a.type, type);
	return a;
}

static void expect_nothing(struct fixture *f) {
	struct round_action a = {0};
	assert_false(round_next_action(f->c, f->now, &a));
}

static struct report expect_report(struct fixture *f, enum worker_phase phase) {
	struct report r;
	assert_true(round_next_report(f->c, f->now, &r));
	assert_int_equal(r.phase, phase);
	return r;
}

static void assert_hash(struct rv_hash a, struct rv_hash b) {
	assert_memory_equal(a.b, b.b, sizeof a.b);
}

/* Round `round` up to the encoded outer gradient. */
static void make_ready(struct fixture *f, uint64_t round) {
	assert_int_equal(show(f, RUN_OPEN, round), RV_OK);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H);
	round_on_trained(f->c, f->now, round, FIXTURE_H, 100);
	assert_int_equal(expect_action(f, ROUND_ENCODE).round, round);
	round_on_encoded(f->c, f->now, round, true);
	expect_nothing(f);
}

static void reduce_and_vote(struct fixture *f, uint64_t round, struct rv_hash digest) {
	assert_int_equal(show(f, RUN_REDUCE, round), RV_OK);
	expect_action(f, ROUND_REDUCE_START);
	round_on_reduced(f->c, f->now, round, 1);
	expect_action(f, ROUND_PERSIST);
	round_on_persisted(f->c, f->now, round, 1, &digest, true);
	expect_nothing(f);
}

static void apply_ok(struct fixture *f, uint64_t round) {
	struct rv_hash chain = chain_at(round + 1);
	round_on_applied(f->c, f->now, round, &chain, true);
}

static void a_round_from_open_to_commit(void **state) {
	struct fixture *f = *state;
	expect_nothing(f);
	expect_report(f, WORKER_SYNCING);
	make_ready(f, 0);
	struct report r = expect_report(f, WORKER_READY);
	assert_int_equal(r.tokens, 100);
	assert_int_equal(r.n_chunks, FIXTURE_CHUNKS);
	assert_int_equal(r.boot, 77);
	struct rv_hash digest = digest_of(0), chain = chain_at(0);
	assert_true(rv_hash_equal(&r.chain, &chain));

	reduce_and_vote(f, 0, digest);
	r = expect_report(f, WORKER_VOTED);
	assert_int_equal(r.attempt, 1);
	assert_true(rv_hash_equal(&r.digest, &digest));

	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_REDUCE_STOP);
	struct round_action a = expect_action(f, ROUND_APPLY);
	assert_true(a.participated);
	assert_true(rv_hash_equal(&a.expect, &digest));
	expect_nothing(f); /* never applied twice */
	apply_ok(f, 0);
	apply_ok(f, 0);
	assert_int_equal(round_round(f->c), 1);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H);
	assert_int_equal(expect_report(f, WORKER_TRAINING).round, 1);
}

static void reports_on_change_and_on_heartbeat(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 0);
	struct report first = expect_report(f, WORKER_TRAINING), second;
	assert_false(round_next_report(f->c, f->now, &second));
	assert_int_equal(round_deadline_us(f->c), f->now + HEARTBEAT_US);
	f->now += HEARTBEAT_US;
	second = expect_report(f, WORKER_TRAINING);
	assert_int_equal(second.seq, first.seq + 1);
}

static void documents_not_newer_are_ignored(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 1);
	f->seq = 0;
	assert_int_equal(show(f, RUN_DONE, FIXTURE_ROUNDS), RV_OK);
	assert_int_equal(round_document(f->c)->round, 1);
}

static void missed_rounds_are_fetched_in_order(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 3);
	expect_report(f, WORKER_SYNCING);
	for (uint64_t round = 0; round < 3; round++) {
		struct round_action next = {0}, a = expect_action(f, ROUND_FETCH_LOG);
		struct rv_hash digest = digest_of(round);
		assert_int_equal(a.round, round);
		assert_true(rv_hash_equal(&a.expect, &digest));
		assert_int_equal(round_fetch_after(f->c, &a, &next), round < 2);
		assert_true(round == 2 || (next.type == ROUND_FETCH_LOG && next.round == round + 1));
		expect_nothing(f);
		round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, round, true);
		a = expect_action(f, ROUND_APPLY);
		assert_false(a.participated);
		apply_ok(f, round);
	}
	expect_action(f, ROUND_TRAIN);
	expect_report(f, WORKER_TRAINING);
}

static void late_training_goes_on_while_fetching_and_progress_is_kept(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 0);
	expect_action(f, ROUND_TRAIN);
	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_FETCH_LOG);
	round_on_trained(f->c, f->now, 0, 3, 30);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	struct round_action a = expect_action(f, ROUND_APPLY);
	assert_int_equal(a.late, LATE_KEEP);
	assert_false(a.participated);
	round_on_trained(f->c, f->now, 0, 4, 40); /* stopped at a step boundary */
	apply_ok(f, 0);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H - 4);
	assert_int_equal(expect_report(f, WORKER_TRAINING).tokens, 40);
}

/* A worker whose time is over contributes what it has; kept over a round that it missed, it has still had its time. */
static void time_that_is_up_ends_the_contribution(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 0);
	expect_action(f, ROUND_TRAIN);
	round_on_time_up(f->c, 0); /* not before a step */
	expect_nothing(f);
	round_on_trained(f->c, f->now, 0, 2, 20);
	round_on_time_up(f->c, 1); /* of no round of ours */
	expect_nothing(f);
	round_on_time_up(f->c, 0);
	assert_int_equal(expect_action(f, ROUND_ENCODE).round, 0);
	round_on_encoded(f->c, f->now, 0, true);
	expect_nothing(f);
	struct report r = expect_report(f, WORKER_READY);
	assert_int_equal(r.tokens, 20);
	show(f, RUN_OPEN, 1); /* committed without us */
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_action(f, ROUND_APPLY);
	apply_ok(f, 0);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H - 2);
	round_on_trained(f->c, f->now, 1, 2, 20);
	round_on_time_up(f->c, 1);
	expect_action(f, ROUND_ENCODE);
	round_on_encoded(f->c, f->now, 1, false); /* not finite: from theta, with new time */
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H);
}

static void late_progress_is_discarded_by_policy(void **state) {
	struct fixture *f = *state;
	start_with(f, 0, 0, LATE_DISCARD);
	make_ready(f, 0);
	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_int_equal(expect_action(f, ROUND_APPLY).late, LATE_DISCARD);
	apply_ok(f, 0);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H);
}

static void left_out_but_ready_contributes_to_the_next_round(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show_attempt(f, RUN_REDUCE, 0, 1, 0x3);
	expect_nothing(f);
	expect_report(f, WORKER_READY);
	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_false(expect_action(f, ROUND_APPLY).participated);
	apply_ok(f, 0);
	assert_int_equal(expect_action(f, ROUND_ENCODE).round, 1);
}

static void a_later_attempt_supersedes_the_vote(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	struct rv_hash wrong = digest_of(99), right = digest_of(0);
	reduce_and_vote(f, 0, wrong);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x7);
	expect_action(f, ROUND_REDUCE_RESTART);
	assert_int_equal(expect_report(f, WORKER_REDUCING).attempt, 2);
	round_on_reduced(f->c, f->now, 0, 1); /* stale */
	expect_nothing(f);
	round_on_reduced(f->c, f->now, 0, 2);
	expect_action(f, ROUND_PERSIST);
	round_on_persisted(f->c, f->now, 0, 2, &right, true);
	assert_hash(expect_report(f, WORKER_VOTED).digest, right);
	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_REDUCE_STOP);
	assert_true(expect_action(f, ROUND_APPLY).participated);
}

static void a_roster_without_us_stops_the_all_reduce(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_REDUCE_START);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x3);
	expect_action(f, ROUND_REDUCE_STOP);
	expect_report(f, WORKER_READY);
	/* Back in attempt 3: from the start for us. */
	show_attempt(f, RUN_REDUCE, 0, 3, 0x7);
	expect_action(f, ROUND_REDUCE_START);
}

static void too_few_members_for_a_moment_keeps_the_all_reduce(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_REDUCE_START);
	show(f, RUN_WAITING, 0);
	expect_nothing(f);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x7);
	expect_action(f, ROUND_REDUCE_RESTART);
}

static void a_minority_fetches_the_committed_bytes(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	reduce_and_vote(f, 0, digest_of(99));
	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_REDUCE_STOP);
	struct rv_hash digest = digest_of(0);
	assert_hash(expect_action(f, ROUND_FETCH_LOG).expect, digest);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_hash(expect_action(f, ROUND_APPLY).expect, digest);
}

static void a_fork_resyncs_from_the_base(void **state) {
	struct fixture *f = *state;
	struct rv_hash wrong = digest_of(5);
	start_with(f, 6, 0, LATE_KEEP);
	f->c = round_core_init(
		f->c,
		&(struct round_config){.member = FIXTURE_SELF, .steps_per_round = FIXTURE_H, .heartbeat_us = HEARTBEAT_US}, 1,
		6, &wrong, 0, 0);
	document_make(&f->doc, 1, RUN_OPEN, 7, 4);
	document_members(&f->doc, EVERYBODY);
	struct rv_errtext et = {0};
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "round 6"));
	struct round_action a = expect_action(f, ROUND_FETCH_BASE);
	struct rv_hash full = full_at(4);
	assert_int_equal(a.round, 4);
	assert_true(rv_hash_equal(&a.expect, &full));
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 4, true);
	assert_int_equal(expect_action(f, ROUND_FETCH_LOG).round, 4);
	assert_int_equal(expect_report(f, WORKER_SYNCING).round, 4);
}

static void too_far_behind_needs_a_base(void **state) {
	struct fixture *f = *state;
	document_make(&f->doc, 1, RUN_OPEN, 12, 10);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	assert_int_equal(expect_action(f, ROUND_FETCH_BASE).round, 10);
	uint64_t before = expect_report(f, WORKER_SYNCING).boot;
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 10, true);
	assert_int_equal(expect_action(f, ROUND_FETCH_LOG).round, 10);
	/* What peers may still hold of its contributions is void. */
	assert_int_equal(expect_report(f, WORKER_SYNCING).boot, before + 1);
	assert_int_equal(round_boot(f->c), before + 1);
}

static void a_fork_before_any_base_starts_from_theta0(void **state) {
	struct fixture *f = *state;
	struct rv_hash full = full_at(7);
	start_with(f, 2, 0, LATE_KEEP);
	show(f, RUN_OPEN, 2);
	expect_action(f, ROUND_TRAIN);
	(void)full;
	/* Two damaged log entries in a row: the state itself is in doubt. */
	show(f, RUN_OPEN, 3);
	for (int i = 0; i < 2; i++) {
		expect_action(f, ROUND_FETCH_LOG);
		round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 2, true);
		expect_action(f, ROUND_APPLY);
		round_on_applied(f->c, f->now, 2, &full, false);
	}
	struct round_action a = expect_action(f, ROUND_FETCH_BASE);
	assert_int_equal(a.round, 0);
	assert_true(a.made_here);
	assert_int_equal(round_deadline_us(f->c) < INT64_MAX, true);
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 0, true);
	assert_int_equal(expect_action(f, ROUND_FETCH_LOG).round, 0);
}

static void a_full_hash_unlike_the_majoritys_resyncs(void **state) {
	struct fixture *f = *state;
	start_with(f, 6, 0, LATE_KEEP);
	document_make(&f->doc, 1, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	round_on_document(f->c, f->now, &f->doc, NULL);
	struct rv_hash good = full_at(5), bad = full_at(6);
	assert_int_equal(round_on_full_hash(f->c, 5, &good, NULL), RV_OK);
	expect_action(f, ROUND_TRAIN);
	assert_int_equal(expect_report(f, WORKER_TRAINING).full_round, 5);
	assert_int_equal(round_on_full_hash(f->c, 5, &bad, NULL), RV_E_CORRUPT);
	expect_action(f, ROUND_FETCH_BASE);
	expect_report(f, WORKER_SYNCING);
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 5, true);
	expect_action(f, ROUND_FETCH_LOG);
}

/* The majority's word on round 5 comes when our own hash of round 6 is already there. */
/* A run that starts from given weights: a worker without them asks a peer for the state of round 0, and the one with
 * them that has diverged does too. */
static void the_first_state_may_come_from_a_peer(void **state) {
	struct fixture *f = *state;
	struct round_config cfg = {.member = FIXTURE_SELF,
							   .steps_per_round = FIXTURE_H,
							   .n_chunks = {FIXTURE_CHUNKS},
							   .theta0_from_peers = true,
							   .heartbeat_us = HEARTBEAT_US};
	struct rv_hash chain = chain_at(0);
	f->c = round_core_init(f->c, &cfg, 77, 0, &chain, 0, f->now);
	round_lacks_state(f->c);
	show_attempt(f, RUN_WAITING, 0, 0, 0);
	struct round_action a = expect_action(f, ROUND_FETCH_BASE); /* nobody is there; the own disk is */
	expect_report(f, WORKER_SYNCING);
	show(f, RUN_OPEN, 0);
	expect_nothing(f); /* it is being fetched */
	assert_int_equal(a.round, 0);
	assert_false(a.made_here);
	assert_true(rv_hash_is_zero(&a.expect));
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 0, true);
	expect_action(f, ROUND_TRAIN);
	assert_int_equal(expect_report(f, WORKER_TRAINING).full_round, 0);
}

static void an_earlier_full_hash_is_compared_too(void **state) {
	struct fixture *f = *state;
	start_with(f, 6, 0, LATE_KEEP);
	struct rv_hash bad = full_at(50), later = full_at(60);
	assert_int_equal(round_on_full_hash(f->c, 5, &bad, NULL), RV_OK);
	assert_int_equal(round_on_full_hash(f->c, 6, &later, NULL), RV_OK);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_E_CORRUPT);
	expect_action(f, ROUND_FETCH_BASE);
	assert_int_equal(expect_report(f, WORKER_SYNCING).full_round, 6);
}

static void a_full_hash_of_a_state_that_was_given_up_is_ignored(void **state) {
	struct fixture *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	struct rv_hash bad = full_at(60);
	assert_int_equal(round_on_full_hash(f->c, 6, &bad, NULL), RV_OK);
	show(f, RUN_OPEN, 5);
	assert_int_equal(expect_report(f, WORKER_TRAINING).full_round, 0);
}

static void a_new_base_forgets_the_vote_on_the_old_history(void **state) {
	struct fixture *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	document_make(&f->doc, 1, RUN_OPEN, 5, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	struct rv_hash digest = digest_of(5), bad = full_at(6);
	round_on_persisted(f->c, f->now, 5, 1, &digest, true);
	assert_int_equal(round_on_full_hash(f->c, 5, &bad, NULL), RV_E_CORRUPT);
	expect_action(f, ROUND_FETCH_BASE);
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 5, true);
	document_make(&f->doc, 2, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	assert_int_equal(expect_action(f, ROUND_FETCH_LOG).round, 5); /* not APPLY: the log went with the old history */
}

static void a_fetch_that_was_no_use_is_repeated_after_a_pause(void **state) {
	struct fixture *f = *state;
	struct round_action a;
	show(f, RUN_OPEN, 1);
	expect_action(f, ROUND_FETCH_LOG);
	f->now += 1000 * HEARTBEAT_US;
	while (round_next_action(f->c, f->now, &a)) /* who is asked, and for how long, is not its matter */
		assert_int_equal(a.type, ROUND_TRAIN);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, false);
	expect_nothing(f);
	f->now += HEARTBEAT_US;
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	expect_action(f, ROUND_APPLY);
}

static void a_newer_base_supersedes_the_fetch(void **state) {
	struct fixture *f = *state;
	struct round_action next;
	document_make(&f->doc, 1, RUN_OPEN, 12, 10);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	struct round_action a = expect_action(f, ROUND_FETCH_BASE);
	assert_hash(a.chain, chain_at(10));
	assert_true(round_fetch_after(f->c, &a, &next) && next.round == 10);
	document_make(&f->doc, 2, RUN_OPEN, 15, 15);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	a = expect_action(f, ROUND_FETCH_BASE);
	assert_int_equal(a.round, 15);
	assert_false(round_fetch_after(f->c, &a, &next));
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, 10, true); /* late: of the one before */
	expect_nothing(f);
}

static void waiting_holds(void **state) {
	struct fixture *f = *state;
	show(f, RUN_WAITING, 0);
	expect_nothing(f);
	expect_report(f, WORKER_TRAINING);
	show(f, RUN_OPEN, 0);
	expect_action(f, ROUND_TRAIN);
}

static void done_applies_the_last_round_first(void **state) {
	struct fixture *f = *state;
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	make_ready(f, FIXTURE_ROUNDS - 1);
	reduce_and_vote(f, FIXTURE_ROUNDS - 1, digest_of(FIXTURE_ROUNDS - 1));
	show(f, RUN_DONE, FIXTURE_ROUNDS);
	expect_action(f, ROUND_REDUCE_STOP);
	expect_action(f, ROUND_APPLY);
	apply_ok(f, FIXTURE_ROUNDS - 1);
	expect_nothing(f); /* until a majority has vouched for the end, or a while has passed */
	f->now += 100 * HEARTBEAT_US;
	expect_action(f, ROUND_FINISH);
	assert_false(round_end_verified(f->c));
	expect_nothing(f);
}

/* What the others took with them is lacked; what is at hand, or can be made here, is not. */
static void who_is_alone_at_the_end_lacks_donors_or_not(void **state) {
	struct fixture *f = *state;
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	assert_false(round_lacks_donors(f->c));
	make_ready(f, FIXTURE_ROUNDS - 1);
	reduce_and_vote(f, FIXTURE_ROUNDS - 1, digest_of(FIXTURE_ROUNDS - 1));
	show_attempt(f, RUN_DONE, FIXTURE_ROUNDS, 1, UINT64_C(1) << FIXTURE_SELF);
	assert_false(round_lacks_donors(f->c)); /* its own vote: nothing is fetched */
	expect_action(f, ROUND_REDUCE_STOP);
	expect_action(f, ROUND_APPLY);
	assert_false(round_lacks_donors(f->c));
	apply_ok(f, FIXTURE_ROUNDS - 1);
	assert_false(round_lacks_donors(f->c));
	start_with(f, FIXTURE_ROUNDS - 1, 0, LATE_KEEP);
	show_attempt(f, RUN_DONE, FIXTURE_ROUNDS, 1, UINT64_C(1) << FIXTURE_SELF);
	assert_true(round_lacks_donors(f->c));
	expect_action(f, ROUND_FETCH_LOG); /* perhaps the own disk has it */
	show(f, RUN_DONE, FIXTURE_ROUNDS);
	assert_false(round_lacks_donors(f->c));
	expect_nothing(f);
}

/* An open document in which only this worker has the state, and member 5 lacks it. */
static void show_standstill(struct fixture *f, uint64_t round) {
	struct document d;
	document_make(&d, ++f->seq, RUN_OPEN, round, 0);
	document_members(&d, UINT64_C(1) << FIXTURE_SELF);
	d.n_syncing = 1;
	d.syncing[0] = (struct member_ref){.member = 5, .addr = "127.0.0.1:1"};
	assert_int_equal(round_on_document(f->c, f->now, &d, NULL), RV_OK);
}

/* What the others cannot fetch is written anew from memory, once for a round, and not before they had time. */
static void who_holds_the_state_in_a_standstill_writes_it_anew(void **state) {
	struct fixture *f = *state;
	struct rv_hash chain = chain_at(3);
	struct round_config cfg = {.member = FIXTURE_SELF,
							   .steps_per_round = FIXTURE_H,
							   .n_chunks = {FIXTURE_CHUNKS},
							   .min_workers = 2,
							   .heartbeat_us = HEARTBEAT_US};
	f->c = round_core_init(f->c, &cfg, 77, 3, &chain, 0, f->now);
	make_ready(f, 3);
	show_standstill(f, 3);
	expect_nothing(f);
	f->now += 14 * HEARTBEAT_US;
	expect_nothing(f);
	f->now += HEARTBEAT_US;
	assert_int_equal(expect_action(f, ROUND_KEEP_BASE).round, 3);
	struct rv_hash full = full_at(3);
	assert_int_equal(round_on_full_hash(f->c, 3, &full, NULL), RV_OK);
	f->now += 100 * HEARTBEAT_US;
	expect_nothing(f);
	assert_int_equal(expect_report(f, WORKER_READY).full_round, 3);
}

/* The document of the end with a base of the end. */
static enum rv_err show_vouched_end(struct fixture *f) {
	document_make(&f->doc, ++f->seq, RUN_DONE, FIXTURE_ROUNDS, FIXTURE_ROUNDS);
	document_members(&f->doc, EVERYBODY);
	return round_on_document(f->c, f->now, &f->doc, NULL);
}

static void a_verified_end_finishes_at_once(void **state) {
	struct fixture *f = *state;
	start_with(f, FIXTURE_ROUNDS, 0, LATE_KEEP);
	struct rv_hash mine = full_at(FIXTURE_ROUNDS);
	show_vouched_end(f);
	expect_nothing(f); /* our own hash is still being computed */
	assert_int_equal(round_on_full_hash(f->c, FIXTURE_ROUNDS, &mine, NULL), RV_OK);
	expect_action(f, ROUND_FINISH);
	assert_true(round_end_verified(f->c));
}

static void a_wrong_end_is_fetched_from_peers(void **state) {
	struct fixture *f = *state;
	start_with(f, FIXTURE_ROUNDS, 0, LATE_KEEP);
	struct rv_hash bad = full_at(0);
	assert_int_equal(round_on_full_hash(f->c, FIXTURE_ROUNDS, &bad, NULL), RV_OK);
	assert_int_equal(show_vouched_end(f), RV_E_CORRUPT);
	expect_action(f, ROUND_FETCH_BASE);
	round_on_fetched(f->c, f->now, ROUND_FETCH_BASE, FIXTURE_ROUNDS, true);
	expect_action(f, ROUND_FINISH);
	assert_true(round_end_verified(f->c)); /* what was installed is what is vouched for */
}

static void a_vote_for_the_last_step_to_a_base_needs_no_base(void **state) {
	struct fixture *f = *state;
	start_with(f, 4, 0, LATE_KEEP);
	make_ready(f, 4);
	reduce_and_vote(f, 4, digest_of(4));
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 5);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	expect_action(f, ROUND_REDUCE_STOP);
	assert_hash(expect_action(f, ROUND_APPLY).expect, digest_of(4));
	apply_ok(f, 4);
	assert_int_equal(expect_action(f, ROUND_FETCH_LOG).round, 5);
}

static void a_vote_that_lost_does_not_lead_to_the_base(void **state) {
	struct fixture *f = *state;
	start_with(f, 4, 0, LATE_KEEP);
	make_ready(f, 4);
	reduce_and_vote(f, 4, digest_of(40));
	document_make(&f->doc, ++f->seq, RUN_OPEN, 5, 5);
	document_members(&f->doc, EVERYBODY);
	round_on_document(f->c, f->now, &f->doc, NULL);
	expect_action(f, ROUND_REDUCE_STOP);
	assert_int_equal(expect_action(f, ROUND_FETCH_BASE).round, 5);
}

static void a_vote_found_on_disk_is_cast_again(void **state) {
	struct fixture *f = *state;
	struct rv_hash digest = digest_of(3);
	start_with(f, 3, 2, LATE_KEEP);
	round_on_persisted(f->c, f->now, 3, 1, &digest, true);
	show(f, RUN_REDUCE, 3);
	assert_hash(expect_report(f, WORKER_VOTED).digest, digest);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H - 2);
	show(f, RUN_OPEN, 4);
	assert_true(expect_action(f, ROUND_APPLY).participated);
}

static void an_uncommitted_log_entry_is_replaced(void **state) {
	struct fixture *f = *state;
	struct rv_hash other = digest_of(77);
	start_with(f, 3, 0, LATE_KEEP);
	round_on_persisted(f->c, f->now, 3, 1, &other, true);
	show(f, RUN_OPEN, 4);
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 3, true);
	assert_false(expect_action(f, ROUND_APPLY).participated);
}

static void without_an_encoded_gradient_nobody_takes_part(void **state) {
	struct fixture *f = *state;
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_TRAIN);
	expect_nothing(f);
	expect_report(f, WORKER_TRAINING);
}

static void a_roster_of_our_former_process_is_not_ours(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 0, 0);
	document_members(&f->doc, EVERYBODY);
	f->doc.members[FIXTURE_SELF].boot = 76;
	round_on_document(f->c, f->now, &f->doc, NULL);
	expect_nothing(f);
	expect_report(f, WORKER_READY);
	f->doc.seq = ++f->seq;
	f->doc.attempt++;
	f->doc.members[FIXTURE_SELF].boot = 77;
	round_on_document(f->c, f->now, &f->doc, NULL);
	expect_action(f, ROUND_REDUCE_START);
}

static void a_gradient_that_is_not_finite_is_trained_again(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 0);
	expect_action(f, ROUND_TRAIN);
	round_on_trained(f->c, f->now, 0, FIXTURE_H, 9);
	expect_action(f, ROUND_ENCODE);
	round_on_encoded(f->c, f->now, 0, false);
	struct report r = expect_report(f, WORKER_SYNCING); /* nobody waits for it */
	struct rv_hash chain = chain_at(0);
	assert_int_equal(r.proven_round, 0);
	assert_memory_equal(&r.proven_chain, &chain, sizeof chain);
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H);
	round_on_trained(f->c, f->now, 0, 2, 9);
	round_on_spoiled(f->c, f->now, 1); /* no round of ours */
	expect_nothing(f);
	round_on_spoiled(f->c, f->now, 0); /* again, while it trains */
	assert_int_equal(expect_action(f, ROUND_TRAIN).steps, FIXTURE_H);
	round_on_trained(f->c, f->now, 0, FIXTURE_H, 9);
	expect_action(f, ROUND_ENCODE);
	round_on_encoded(f->c, f->now, 0, true);
	expect_report(f, WORKER_READY);
}

/* Its former process had voted: still it is this state that the run asks for. */
static void a_gradient_of_no_use_leaves_the_state_proven(void **state) {
	struct fixture *f = *state;
	struct rv_hash digest = digest_of(3), held = chain_at(3);
	start_with(f, 3, FIXTURE_H, LATE_KEEP);
	round_on_persisted(f->c, f->now, 3, 1, &digest, true);
	show(f, RUN_OPEN, 3);
	expect_action(f, ROUND_ENCODE);
	round_on_encoded(f->c, f->now, 3, false);
	struct report r = expect_report(f, WORKER_SYNCING);
	assert_int_equal(r.proven_round, 3);
	assert_memory_equal(&r.proven_chain, &held, sizeof held);
	show(f, RUN_OPEN, 4); /* what it had given before is in it */
	r = expect_report(f, WORKER_SYNCING);
	assert_int_equal(r.proven_round, 4);
}

static void a_gradient_of_no_use_is_late(void **state) {
	struct fixture *f = *state;
	show(f, RUN_OPEN, 0);
	expect_action(f, ROUND_TRAIN);
	round_on_spoiled(f->c, f->now, 0);
	expect_action(f, ROUND_TRAIN);
	round_on_trained(f->c, f->now, 0, 1, 9);
	show(f, RUN_OPEN, 1); /* committed without it */
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_false(expect_action(f, ROUND_APPLY).participated);
	apply_ok(f, 0);
	expect_report(f, WORKER_TRAINING);
}

static void a_full_disk_lets_the_others_go_on(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_REDUCE_START);
	round_on_reduced(f->c, f->now, 0, 1);
	expect_action(f, ROUND_PERSIST);
	round_on_persisted(f->c, f->now, 0, 1, &(struct rv_hash){0}, false);
	assert_int_equal(expect_report(f, WORKER_LEAVING).storage, REPORT_STORAGE_ROUNDS);
	expect_nothing(f);
	f->now += HEARTBEAT_US;
	expect_action(f, ROUND_PERSIST);
	struct rv_hash digest = digest_of(0);
	round_on_persisted(f->c, f->now, 0, 1, &digest, true);
	assert_int_equal(expect_report(f, WORKER_VOTED).storage, 0);
}

/* It was left out, and the others are too few without it: it must come back when there may be room again. */
static void a_disk_that_was_full_is_tried_again_in_the_next_attempt(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_REDUCE_START);
	round_on_reduced(f->c, f->now, 0, 1);
	expect_action(f, ROUND_PERSIST);
	round_on_persisted(f->c, f->now, 0, 1, &(struct rv_hash){0}, false);
	show(f, RUN_WAITING, 0);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
	f->now += HEARTBEAT_US;
	expect_action(f, ROUND_PROBE);
	expect_nothing(f);
	assert_int_equal(expect_report(f, WORKER_READY).storage, REPORT_STORAGE_ROUNDS);
	round_on_storage(f->c, f->now, false);
	expect_nothing(f);
	f->now += HEARTBEAT_US;
	expect_action(f, ROUND_PROBE);
	assert_int_equal(expect_report(f, WORKER_READY).storage, REPORT_STORAGE_ROUNDS);
	round_on_storage(f->c, f->now, true);
	assert_int_equal(expect_report(f, WORKER_READY).storage, 0); /* at once */
	f->now += HEARTBEAT_US;
	expect_nothing(f);
}

static void suspects_are_reported_for_the_current_attempt_only(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_REDUCE_START);
	expect_report(f, WORKER_REDUCING);
	round_on_suspects(f->c, f->now, 1, 0x8);
	assert_int_equal(expect_report(f, WORKER_REDUCING).suspects, 0x8);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x7);
	expect_action(f, ROUND_REDUCE_RESTART);
	round_on_suspects(f->c, f->now, 1, 0x8);
	assert_int_equal(expect_report(f, WORKER_REDUCING).suspects, 0);
}

static void leaving_stops_everything(void **state) {
	struct fixture *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_action(f, ROUND_REDUCE_START);
	round_leave(f->c, f->now);
	expect_action(f, ROUND_REDUCE_STOP);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
}

static void contradictions_are_refused(void **state) {
	struct fixture *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	assert_int_equal(show(f, RUN_OPEN, 4), RV_E_CORRUPT); /* before what we hold */
	assert_null(round_document(f->c));
	assert_int_equal(show(f, RUN_OPEN, 5), RV_OK);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 0);
	f->doc.run_hash.b[0] ^= 1;
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_E_CORRUPT);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 0);
	f->doc.log[2].b[0] ^= 1;
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_E_CORRUPT);
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 5, 0);
	f->doc.n_chunks++;
	assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_E_PROTOCOL);
	assert_int_equal(round_document(f->c)->round, 5);
	expect_action(f, ROUND_TRAIN);
}

/* Three fragments: what a report says and what a document may say is of its round's. */
static void each_round_has_the_size_of_its_fragment(void **state) {
	struct fixture *f = *state;
	for (uint64_t round = 0; round < 6; round++) {
		const struct round_config cfg = {.member = FIXTURE_SELF,
										 .steps_per_round = FIXTURE_H,
										 .n_fragments = 3,
										 .n_chunks = {FIXTURE_CHUNKS, FIXTURE_CHUNKS + 4, FIXTURE_CHUNKS + 2},
										 .heartbeat_us = HEARTBEAT_US};
		struct rv_hash chain = chain_at(round);
		f->c = round_core_init(f->c, &cfg, 77, round, &chain, 0, f->now);
		assert_int_equal(expect_report(f, WORKER_SYNCING).n_chunks, cfg.n_chunks[round % 3]);
		document_make(&f->doc, ++f->seq, RUN_REDUCE, round, 0);
		f->doc.n_chunks = cfg.n_chunks[round % 3] + 1;
		assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_E_PROTOCOL);
		f->doc.n_chunks = cfg.n_chunks[round % 3];
		assert_int_equal(round_on_document(f->c, f->now, &f->doc, NULL), RV_OK);
	}
}

/* Starts again at the beginning of a round that commits meanwhile: was our former gradient in it? */
static bool participated_after_a_restart(struct fixture *f, bool had_former, bool left_out) {
	const struct round_config cfg = {
		.member = FIXTURE_SELF, .steps_per_round = FIXTURE_H, .had_former = had_former, .heartbeat_us = HEARTBEAT_US};
	struct rv_hash chain = chain_at(3);
	f->c = round_core_init(f->c, &cfg, 78, 3, &chain, 0, f->now);
	if (left_out)
		show_attempt(f, RUN_REDUCE, 3, 1, EVERYBODY & ~(UINT64_C(1) << FIXTURE_SELF));
	else
		show(f, RUN_OPEN, 4);
	if (left_out) {
		expect_action(f, ROUND_TRAIN);
		show(f, RUN_OPEN, 4);
	}
	expect_action(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 3, true);
	return expect_action(f, ROUND_APPLY).participated;
}

static void progress_of_rounds_before_may_have_been_given(void **state) {
	struct fixture *f = *state;
	assert_false(participated_after_a_restart(f, false, false));
	assert_true(participated_after_a_restart(f, true, false)); /* to count it twice would be worse than to lose it */
	assert_false(participated_after_a_restart(f, true, true));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_round_from_open_to_commit),
		T(reports_on_change_and_on_heartbeat),
		T(documents_not_newer_are_ignored),
		T(missed_rounds_are_fetched_in_order),
		T(each_round_has_the_size_of_its_fragment),
		T(progress_of_rounds_before_may_have_been_given),
		T(late_training_goes_on_while_fetching_and_progress_is_kept),
		T(time_that_is_up_ends_the_contribution),
		T(late_progress_is_discarded_by_policy),
		T(left_out_but_ready_contributes_to_the_next_round),
		T(a_later_attempt_supersedes_the_vote),
		T(a_roster_without_us_stops_the_all_reduce),
		T(too_few_members_for_a_moment_keeps_the_all_reduce),
		T(a_minority_fetches_the_committed_bytes),
		T(a_fork_resyncs_from_the_base),
		T(too_far_behind_needs_a_base),
		T(a_fork_before_any_base_starts_from_theta0),
		T(a_full_hash_unlike_the_majoritys_resyncs),
		T(the_first_state_may_come_from_a_peer),
		T(an_earlier_full_hash_is_compared_too),
		T(a_full_hash_of_a_state_that_was_given_up_is_ignored),
		T(who_is_alone_at_the_end_lacks_donors_or_not),
		T(who_holds_the_state_in_a_standstill_writes_it_anew),
		T(a_verified_end_finishes_at_once),
		T(a_wrong_end_is_fetched_from_peers),
		T(a_vote_for_the_last_step_to_a_base_needs_no_base),
		T(a_vote_that_lost_does_not_lead_to_the_base),
		T(a_new_base_forgets_the_vote_on_the_old_history),
		T(a_fetch_that_was_no_use_is_repeated_after_a_pause),
		T(a_newer_base_supersedes_the_fetch),
		T(waiting_holds),
		T(done_applies_the_last_round_first),
		T(a_vote_found_on_disk_is_cast_again),
		T(an_uncommitted_log_entry_is_replaced),
		T(without_an_encoded_gradient_nobody_takes_part),
		T(a_roster_of_our_former_process_is_not_ours),
		T(a_gradient_that_is_not_finite_is_trained_again),
		T(a_gradient_of_no_use_leaves_the_state_proven),
		T(a_gradient_of_no_use_is_late),
		T(a_full_disk_lets_the_others_go_on),
		T(a_disk_that_was_full_is_tried_again_in_the_next_attempt),
		T(suspects_are_reported_for_the_current_attempt_only),
		T(leaving_stops_everything),
		T(contradictions_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
