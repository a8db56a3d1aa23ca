/* test_worker_checkpoint_index.c: what names and headers prove, and what may go. */
#include "worker/state/checkpoint_index.h"

#include "base/chain.h"
#include "tests/common/check.h"

#include <stdlib.h>

static struct checkpoint_index *x;

static struct rv_hash run_hash(void) {
	return rv_hash_of("run", 3);
}

static struct rv_hash digest_of(uint64_t round) {
	return rv_hash_of(&round, sizeof round);
}

static struct rv_hash chain_at(uint64_t round) {
	struct rv_hash hash = run_hash(), chain = rv_chain_start(&hash);
	for (uint64_t r = 0; r < round; r++) {
		struct rv_hash digest = digest_of(r);
		chain = rv_chain_next(&chain, &digest);
	}
	return chain;
}

static int setup(void **state) {
	struct rv_hash hash = run_hash();
	(void)state;
	x = malloc(sizeof *x);
	checkpoint_index_init(x, true, &hash);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	free(x);
	return 0;
}

static void snapshot(uint64_t round) {
	struct rv_hash chain = chain_at(round);
	checkpoint_index_add(x, STATE_KIND_SNAPSHOT, round, 0, &chain);
}

static void logs(uint64_t first, uint64_t last, uint32_t attempt) {
	for (uint64_t r = first; r <= last; r++) {
		struct rv_hash digest = digest_of(r);
		checkpoint_index_add(x, STATE_KIND_LOG, r, attempt, &digest);
	}
}

static struct checkpoint_start start(void) {
	struct checkpoint_start s;
	assert_true(checkpoint_start_before(x, UINT64_MAX, &s));
	return s;
}

static void assert_reach(uint64_t from, uint64_t to) {
	struct checkpoint_start s = start();
	assert_int_equal(s.round, from);
	assert_int_equal(checkpoint_reach(x, &s), to);
}

static void nothing_there_is_theta0_or_nothing(void **state) {
	struct checkpoint_start s;
	struct rv_hash hash = run_hash(), chain = chain_at(0);
	(void)state;
	assert_reach(0, 0);
	assert_false(start().snapshot);
	assert_memory_equal(start().chain.b, chain.b, RV_HASH_BYTES);
	checkpoint_index_init(x, false, &hash);
	assert_false(checkpoint_start_before(x, UINT64_MAX, &s));
}

static void the_newest_entry_is_a_vote_until_something_proves_it(void **state) {
	(void)state;
	logs(0, 4, 1);
	assert_reach(0, 4);
	assert_true(checkpoint_is_vote(x, 4));
	x->replica_round = 5;
	assert_reach(0, 5);
	assert_false(checkpoint_is_vote(x, 4));
	x->replica_round = 4;
	snapshot(5);
	assert_reach(5, 5);
	assert_true(checkpoint_proved(x, 4));
}

static void a_fetched_entry_is_proved(void **state) {
	(void)state;
	logs(0, 3, 1);
	logs(4, 4, 0);
	assert_reach(0, 5);
}

static void a_gap_and_a_damaged_entry_end_the_log(void **state) {
	(void)state;
	logs(0, 2, 1);
	logs(4, 6, 1);
	assert_reach(0, 2); /* entry 2: its successor is not there */
	logs(3, 3, 1);
	assert_reach(0, 6);
	checkpoint_index_damaged(x, STATE_KIND_LOG, 4);
	assert_reach(0, 4);
	assert_true(checkpoint_proved(x, 3)); /* by a damaged successor too */
	checkpoint_index_add(x, STATE_KIND_LOG, 2, 1, NULL);
	assert_reach(0, 2);
}

static void a_damaged_snapshot_gives_way_to_the_one_before(void **state) {
	(void)state;
	logs(0, 9, 1);
	snapshot(4);
	snapshot(8);
	assert_reach(8, 9);
	checkpoint_index_damaged(x, STATE_KIND_SNAPSHOT, 8);
	assert_reach(4, 9);
	checkpoint_index_add(x, STATE_KIND_SNAPSHOT, 4, 0, NULL);
	assert_reach(0, 9);
}

/* Left out of round 5, it then installed snapshot 6: its own entry of round 5 was never
 * committed. */
static void an_entry_that_was_never_committed_is_not_replayed(void **state) {
	struct rv_hash other = rv_hash_of("another result", 14);
	(void)state;
	snapshot(4);
	logs(4, 4, 1);
	checkpoint_index_add(x, STATE_KIND_LOG, 5, 1, &other);
	snapshot(6);
	logs(6, 7, 1);
	assert_reach(6, 7);
	struct checkpoint_start s;
	assert_true(checkpoint_start_before(x, 5, &s));
	assert_int_equal(s.round, 4);
	assert_int_equal(checkpoint_reach(x, &s), 4);
	checkpoint_index_damaged(x, STATE_KIND_SNAPSHOT, 6); /* its header still says what its chain is */
	assert_reach(4, 4);
}

static void assert_kept(uint64_t snapshots, uint64_t log_rounds, uint64_t vouched, uint64_t snapshots_from,
						uint64_t logs_from) {
	const struct checkpoint_policy policy = {snapshots, log_rounds};
	const struct checkpoint_named named = {.vouched_round = vouched, .logs_from = vouched};
	struct checkpoint_keep keep = checkpoint_retention(x, &policy, &named);
	assert_int_equal(keep.snapshots_from, snapshots_from);
	assert_int_equal(keep.logs_from, logs_from);
}

static void retention_keeps_what_a_joiner_starts_from(void **state) {
	(void)state;
	logs(0, 19, 1);
	for (uint64_t r = 4; r <= 16; r += 4)
		snapshot(r);
	assert_kept(0, 0, 16, 0, 0);
	assert_kept(1, 0, 16, 16, 16);
	assert_kept(2, 0, 16, 12, 12);
	assert_kept(2, 0, 12, 8, 8);
	assert_kept(2, 0, 11, 4, 4);
	assert_kept(9, 0, 16, 4, 4);
	assert_kept(1, 0, 3, 0, 0); /* nothing that a joiner could start from: nothing goes */
	assert_kept(1, 10, 16, 16, 10);
	assert_kept(1, 2, 16, 16, 16);
	assert_kept(1, 1000, 16, 16, 0);
	checkpoint_index_damaged(x, STATE_KIND_SNAPSHOT, 12);
	assert_kept(2, 0, 16, 8, 8);
}

static void what_joiners_still_fetch_is_kept(void **state) {
	const struct checkpoint_policy policy = {.keep_snapshots = 1};
	const struct checkpoint_named named = {.vouched_round = 16, .logs_from = 6, .n_snapshots = 1, .snapshots = {8}};
	(void)state;
	logs(0, 19, 1);
	for (uint64_t r = 4; r <= 16; r += 4)
		snapshot(r);
	struct checkpoint_keep keep = checkpoint_retention(x, &policy, &named);
	assert_int_equal(keep.snapshots_from, 16);
	assert_int_equal(keep.logs_from, 6);
	assert_true(checkpoint_keeps_snapshot(&keep, &named, 16));
	assert_false(checkpoint_keeps_snapshot(&keep, &named, 12));
	assert_true(checkpoint_keeps_snapshot(&keep, &named, 8));
	assert_false(checkpoint_keeps_snapshot(&keep, &named, 4));
}

static void of_too_many_files_the_newest_are_known(void **state) {
	(void)state;
	for (uint64_t r = 0; r < CHECKPOINT_MAX_FILES + 10; r++)
		logs((r * 7919) % (CHECKPOINT_MAX_FILES + 10), (r * 7919) % (CHECKPOINT_MAX_FILES + 10), 1);
	assert_int_equal(x->logs.n, CHECKPOINT_MAX_FILES);
	for (int i = 0; i < x->logs.n; i++)
		assert_int_equal(x->logs.at[i].round, i + 10);
}

/* From whatever is there: what is kept proves what was proved before. */
static void retention_never_costs_what_is_proved(void **state) {
	uint32_t seed = 1;
	(void)state;
	for (int trial = 0; trial < 3000; trial++) {
		struct rv_hash hash = run_hash();
		checkpoint_index_init(x, true, &hash);
		for (uint64_t r = 0; r < 20; r++) {
			seed = seed * 1664525 + 1013904223;
			if (seed >> 28 < 13)
				logs(r, r, seed >> 27 & 1);
			if (r % 3 == 0 && seed >> 24 & 1)
				snapshot(r);
			if (r % 3 == 0 && (seed >> 20 & 7) == 0)
				checkpoint_index_damaged(x, STATE_KIND_SNAPSHOT, r);
		}
		struct checkpoint_start s = start();
		uint64_t vouched = seed >> 10 & 31, reach = checkpoint_reach(x, &s);
		struct checkpoint_policy policy = {.keep_snapshots = 1 + (seed >> 8 & 1)};
		const struct checkpoint_named named = {.vouched_round = vouched, .logs_from = vouched};
		struct checkpoint_keep keep = checkpoint_retention(x, &policy, &named);
		struct checkpoint_index *kept = malloc(sizeof *kept);
		checkpoint_index_init(kept, true, &hash);
		for (int i = 0; i < x->snapshots.n; i++)
			if (x->snapshots.at[i].round >= keep.snapshots_from) {
				checkpoint_index_add(kept, STATE_KIND_SNAPSHOT, x->snapshots.at[i].round, 0, &x->snapshots.at[i].hash);
				if (x->snapshots.at[i].damaged)
					checkpoint_index_damaged(kept, STATE_KIND_SNAPSHOT, x->snapshots.at[i].round);
			}
		for (int i = 0; i < x->logs.n; i++)
			if (x->logs.at[i].round >= keep.logs_from)
				checkpoint_index_add(kept, STATE_KIND_LOG, x->logs.at[i].round, x->logs.at[i].attempt,
									 &x->logs.at[i].hash);
		struct checkpoint_start now;
		assert_true(checkpoint_start_before(kept, UINT64_MAX, &now));
		assert_int_equal(now.round, s.round);
		assert_int_equal(checkpoint_reach(kept, &now), reach);
		free(kept);
	}
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(nothing_there_is_theta0_or_nothing),
		T(the_newest_entry_is_a_vote_until_something_proves_it),
		T(a_fetched_entry_is_proved),
		T(a_gap_and_a_damaged_entry_end_the_log),
		T(a_damaged_snapshot_gives_way_to_the_one_before),
		T(an_entry_that_was_never_committed_is_not_replayed),
		T(retention_keeps_what_a_joiner_starts_from),
		T(what_joiners_still_fetch_is_kept),
		T(of_too_many_files_the_newest_are_known),
		T(retention_never_costs_what_is_proved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
