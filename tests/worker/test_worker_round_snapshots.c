/* test_worker_round_snapshots.c: a joiner on a slow line: it stays with the snapshot whose fetch is
 * under way while the document reaches back to it, and goes on by log entries; who cannot be helped
 * so takes the latest snapshot, and says why. */
#include "base/chain.h"
#include "round_driver.h"
#include "tests/common/check.h"

enum { OTHERS = 3, LOGS_PER_SNAPSHOT = 4 };

static int setup(void **state) {
	round_driver_setup(state);
	struct round_driver *f = *state;
	round_driver_start(f, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .logs_per_snapshot = LOGS_PER_SNAPSHOT},
					   0, 0);
	round_lacks_state(f->c);
	return 0;
}

/* The run is at `round`, with a snapshot of `snapshot`; the document lists digests from `from`
 * on. */
static void show(struct round_driver *f, uint64_t round, uint64_t snapshot, uint64_t from) {
	document_make(&f->doc, ++f->seq, RUN_OPEN, round, snapshot);
	document_older(&f->doc, from);
	f->doc.final_round = 1000;
	document_members(&f->doc, OTHERS);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
}

static void expect_needs(struct round_driver *f, uint64_t from) {
	struct report r = report_of(f);
	assert_int_equal(r.phase, WORKER_SYNCING);
	assert_int_equal(r.needs_from, from);
}

static void fetched(struct round_driver *f, enum round_action_type kind, uint64_t round) {
	round_on_fetched(f->c, f->now, kind, round, true);
}

static void apply(struct round_driver *f, uint64_t round) {
	expect_action(f, ROUND_APPLY, round);
	struct rv_hash chain = chain_at(round + 1);
	driver_applied(f, round, &chain, true);
}

static void fetch_and_apply(struct round_driver *f, uint64_t round) {
	expect_action(f, ROUND_FETCH_LOG, round);
	fetched(f, ROUND_FETCH_LOG, round);
	apply(f, round);
}

static void a_snapshot_under_way_is_fetched_to_its_end(void **state) {
	struct round_driver *f = *state;
	struct round_action next;
	show(f, 10, 10, 0);
	struct round_action a = expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	expect_needs(f, 10);
	show(f, 13, 12, 4);
	expect_nothing(f);
	expect_needs(f, 10);
	assert_true(round_fetch_after(f->c, &a, &next));
	assert_int_equal(next.round, 10);
	fetched(f, ROUND_FETCH_SNAPSHOT, 10);
	expect_needs(f, 10);
	fetch_and_apply(f, 10);
	expect_needs(f, 11);
	fetch_and_apply(f, 11);
	fetch_and_apply(f, 12);
	expect_action(f, ROUND_TRAIN, 13);
	assert_false(round_starves(f->c));
}

static void a_snapshot_that_is_out_of_reach_is_given_up(void **state) {
	struct round_driver *f = *state;
	show(f, 10, 10, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	show(f, 20, 20, 11);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 20);
	assert_true(round_starves(f->c));
	expect_needs(f, 20);
	fetched(f, ROUND_FETCH_SNAPSHOT, 20);
	show(f, 21, 20, 11);
	fetch_and_apply(f, 20);
	assert_false(round_starves(f->c));
}

static void a_snapshot_that_nobody_has_any_more_is_given_up(void **state) {
	struct round_driver *f = *state;
	show(f, 10, 10, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	round_on_lacking(f->c, f->now); /* of the latest snapshot: somebody will have it */
	show(f, 13, 12, 4);
	expect_nothing(f);
	round_on_lacking(f->c, f->now);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 12);
	assert_false(round_starves(f->c));
	fetched(f, ROUND_FETCH_SNAPSHOT, 12);
	fetch_and_apply(f, 12);
	expect_action(f, ROUND_TRAIN, 13);
}

static void log_entries_that_nobody_has_any_more_need_the_snapshot(void **state) {
	struct round_driver *f = *state;
	show(f, 10, 10, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	fetched(f, ROUND_FETCH_SNAPSHOT, 10);
	show(f, 13, 12, 4);
	expect_action(f, ROUND_FETCH_LOG, 10);
	round_on_lacking(f->c, f->now);
	expect_action(f, ROUND_CANCEL_FETCH, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 12);
	show(f, 15, 14, 6); /* and that is fetched to its end */
	expect_nothing(f);
	expect_needs(f, 12);
	round_on_lacking(f->c, f->now); /* it is gone, too */
	expect_action(f, ROUND_FETCH_SNAPSHOT, 14);
	assert_false(round_starves(f->c));
	show(f, 17, 16, 6);
	expect_nothing(f);
	fetched(f, ROUND_FETCH_SNAPSHOT, 14);
	fetch_and_apply(f, 14);
}

static void expect_snapshot_instead(struct round_driver *f, uint64_t round) {
	expect_action(f, ROUND_CANCEL_FETCH, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, round);
}

/* After the pause: both may be nowhere. */
static void expect_log_instead(struct round_driver *f, uint64_t round) {
	expect_action(f, ROUND_CANCEL_FETCH, 0);
	expect_nothing(f);
	f->now += DRIVER_HEARTBEAT_US;
	expect_action(f, ROUND_FETCH_LOG, round);
}

/* Members that lost the snapshot, and all later state, return together to what their disks make. */
static void a_latest_snapshot_that_nobody_has_is_made_from_log_entries_however_many(void **state) {
	struct round_driver *f = *state;
	show(f, 2, 2, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 2);
	fetched(f, ROUND_FETCH_SNAPSHOT, 2);
	show(f, 20, 20, 2);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 20);
	round_on_lacking(f->c, f->now);
	expect_log_instead(f, 2);
	expect_needs(f, 2);
	fetched(f, ROUND_FETCH_LOG, 2);
	apply(f, 2);
	expect_action(f, ROUND_FETCH_LOG, 3); /* not the snapshot again */
	round_on_lacking(f->c, f->now);
	expect_snapshot_instead(f, 20);
	round_on_lacking(f->c, f->now);
	expect_log_instead(f, 3); /* a member with either may have come back */
	show(f, 21, 20, 3);
	expect_nothing(f);
	show(f, 25, 25, 3); /* another snapshot: somebody has made it */
	expect_snapshot_instead(f, 25);
	fetched(f, ROUND_FETCH_SNAPSHOT, 25);
	expect_action(f, ROUND_TRAIN, 25);
}

/* Those that were there when it was looked for were behind themselves. One that comes is asked for
 * it, but what is being fetched is not given up. */
static void a_latest_snapshot_that_nobody_had_is_tried_again_when_a_donor_comes(void **state) {
	struct round_driver *f = *state;
	show(f, 2, 2, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 2);
	fetched(f, ROUND_FETCH_SNAPSHOT, 2);
	show(f, 20, 20, 2);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 20);
	round_on_lacking(f->c, f->now);
	expect_log_instead(f, 2);
	document_members(&f->doc, OTHERS | 1 << 5);
	f->doc.seq = ++f->seq;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	expect_nothing(f);
	fetched(f, ROUND_FETCH_LOG, 2);
	apply(f, 2);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 20);
	fetched(f, ROUND_FETCH_SNAPSHOT, 20);
	expect_action(f, ROUND_TRAIN, 20);
}

/* Up to a snapshot's worth of entries; who has begun with them, twice that. */
static void log_entries_are_fetched_while_they_are_less_than_a_snapshot(void **state) {
	struct round_driver *f = *state;
	show(f, 10, 10, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	fetched(f, ROUND_FETCH_SNAPSHOT, 10);
	expect_action(f, ROUND_TRAIN, 10);
	driver_trained(f, 10, FIXTURE_H, 1);
	expect_action(f, ROUND_ENCODE, 10);
	driver_encoded(f->c, 10);
	show(f, 10 + LOGS_PER_SNAPSHOT, 10 + LOGS_PER_SNAPSHOT, 0); /* it was away */
	expect_action(f, ROUND_FETCH_LOG, 10);
	show(f, 11 + LOGS_PER_SNAPSHOT, 11 + LOGS_PER_SNAPSHOT, 0); /* nothing came in all that time */
	expect_action(f, ROUND_CANCEL_FETCH, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 11 + LOGS_PER_SNAPSHOT);
	show(f, 20, 20, 0);
	expect_nothing(f);
	fetched(f, ROUND_FETCH_SNAPSHOT, 15);
	show(f, 15 + 2 * LOGS_PER_SNAPSHOT, 15 + 2 * LOGS_PER_SNAPSHOT, 0);
	expect_action(f, ROUND_FETCH_LOG, 15);
	assert_false(round_starves(f->c));
	show(f, 16 + 2 * LOGS_PER_SNAPSHOT, 16 + 2 * LOGS_PER_SNAPSHOT, 0);
	expect_action(f, ROUND_CANCEL_FETCH, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 16 + 2 * LOGS_PER_SNAPSHOT);
	assert_true(round_starves(f->c));
}

static void a_part_of_a_former_process_is_gone_on_with(void **state) {
	struct round_driver *f = *state;
	struct rv_hash hash = full_at(10);
	round_has_part(f->c, 10);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 13, 12);
	document_older(&f->doc, 6);
	f->doc.n_kept_rounds = 4;
	f->doc.n_kept_snapshots = 2;
	f->doc.kept_snapshots[0] = (struct kept_snapshot){.round = 8, .hash = full_at(8)};
	f->doc.kept_snapshots[1] = (struct kept_snapshot){.round = 10, .hash = hash};
	document_members(&f->doc, OTHERS);
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	struct round_action a = expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	assert_memory_equal(&a.expect, &hash, sizeof hash);
}

static void a_part_that_documents_do_not_know_is_not(void **state) {
	struct round_driver *f = *state;
	round_has_part(f->c, 10);
	show(f, 13, 12, 4);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 12);
}

static void older_digests_must_lead_to_the_snapshot(void **state) {
	struct round_driver *f = *state;
	document_make(&f->doc, ++f->seq, RUN_OPEN, 13, 12);
	document_older(&f->doc, 4);
	f->doc.older[2].b[0] ^= 1;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_CORRUPT);
	expect_nothing(f);
}

static void a_fork_before_the_snapshot_is_seen(void **state) {
	struct round_driver *f = *state;
	struct rv_errtext et = {0};
	show(f, 10, 10, 0);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 10);
	fetched(f, ROUND_FETCH_SNAPSHOT, 10);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 13, 12);
	document_older(&f->doc, 10);
	struct rv_hash other = rv_hash_of("another history", 15);
	f->doc.older_chain = other;
	for (int i = 0; i < 2; i++)
		other = rv_chain_next(&other, &f->doc.older[i]);
	f->doc.snapshot_chain = other;
	f->doc.chain = rv_chain_next(&other, &f->doc.log[0]);
	document_members(&f->doc, OTHERS);
	assert_int_equal(round_on_document(f->c, &f->doc, &et), RV_E_CORRUPT);
	expect_action(f, ROUND_FETCH_SNAPSHOT, 12);
}

/* ---- against the clock ---- */

/* A log entry is 1, a snapshot LOGS_PER_SNAPSHOT, the line carries `per_round` while a round is
 * made; each round is a snapshot. Returned: the round in which it is in, 0: not within 300. */
static uint64_t joins_at(struct round_driver *f, double per_round, bool *starves) {
	double left = 0;
	struct round_action a = {0};
	bool busy = false;
	*starves = false;
	for (uint64_t round = 10; round < 300; round++) {
		double budget = per_round;
		show(f, round, round, round > 60 ? round - 60 : 0);
		while (true) {
			struct round_action next;
			while (round_next_action(f->c, f->now, &next)) {
				busy = next.type == ROUND_FETCH_SNAPSHOT || next.type == ROUND_FETCH_LOG;
				left = next.type == ROUND_FETCH_SNAPSHOT ? LOGS_PER_SNAPSHOT : 1;
				a = next;
				if (a.type == ROUND_APPLY) {
					f->apply = a;
					struct rv_hash chain = chain_at(a.round + 1);
					driver_applied(f, a.round, &chain, true);
				}
				if (a.type == ROUND_TRAIN)
					return round;
			}
			*starves |= round_starves(f->c);
			if (!busy || left > budget)
				break;
			budget -= left;
			busy = false;
			fetched(f, a.type, a.round);
		}
		left -= busy ? budget : 0;
	}
	return 0;
}

static void a_line_just_faster_than_the_run_gets_in(void **state) {
	static const double per_round[] = {1.05, 1.2, 1.5, 3};
	for (size_t i = 0; i < sizeof per_round / sizeof per_round[0]; i++) {
		bool starves;
		uint64_t round = joins_at(*state, per_round[i], &starves);
		assert_true(round > 0 && round <= 10 + (uint64_t)(LOGS_PER_SNAPSHOT / (per_round[i] - 1)) + 3);
		assert_false(starves);
		round_driver_teardown(state);
		setup(state);
	}
}

static void a_line_slower_than_the_run_is_told(void **state) {
	bool starves;
	assert_int_equal(joins_at(*state, 0.4, &starves), 0);
	assert_true(starves);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, round_driver_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		T(a_snapshot_under_way_is_fetched_to_its_end),
		T(a_snapshot_that_is_out_of_reach_is_given_up),
		T(a_snapshot_that_nobody_has_any_more_is_given_up),
		T(log_entries_that_nobody_has_any_more_need_the_snapshot),
		T(a_latest_snapshot_that_nobody_has_is_made_from_log_entries_however_many),
		T(a_latest_snapshot_that_nobody_had_is_tried_again_when_a_donor_comes),
		T(log_entries_are_fetched_while_they_are_less_than_a_snapshot),
		T(a_part_of_a_former_process_is_gone_on_with),
		T(a_part_that_documents_do_not_know_is_not),
		T(older_digests_must_lead_to_the_snapshot),
		T(a_fork_before_the_snapshot_is_seen),
		T(a_line_just_faster_than_the_run_gets_in),
		T(a_line_slower_than_the_run_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
