/* test_sim_replay.c: a seed is a universe: run twice, every event is the same; and no two seeds
 * are. */
#include "sim_runner.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct sim_stats run(uint64_t seed) {
	struct sim_options opt = sim_options_of(seed);
	struct sim_plan *plan = sim_alloc(sizeof *plan);
	struct sim_stats stats;
	char why[1024];
	sim_plan_of(&opt, plan);
	if (!sim_run(&opt, plan, false, &stats, why))
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
	free(plan);
	return stats;
}

static void test_a_seed_replays(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct sim_stats first = run(seed), second = run(seed);
		assert_int_equal(first.trace, second.trace);
		assert_int_equal(first.events, second.events);
		assert_int_equal(first.virtual_us, second.virtual_us);
		assert_memory_equal(first.faults, second.faults, sizeof first.faults);
		assert_int_not_equal(first.trace, run(seed + 1).trace);
	}
}

/* No seed draws a rollback, which is planted only (sim.h), nor claimers and sybils, which --liars
 * draws. */
static bool is_missing(const struct sim_stats *sum, int kind) {
	const bool drawn = kind != FAULT_ROLLBACK && kind != FAULT_CLAIMER && kind != FAULT_SYBILS;
	return drawn && sum->faults[kind] == 0;
}

static int kinds_not_seen(const struct sim_stats *sum) {
	int n = 0;
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		n += is_missing(sum, i);
	return n + (sum->torn_writes == 0) + (sum->named == 0) + (sum->faded == 0) + (sum->own_files == 0);
}

static void test_faults_do_happen(void **state) {
	(void)state;
	struct sim_stats sum = {0};
	for (uint64_t seed = 1; seed <= 300 && (seed <= 40 || kinds_not_seen(&sum) > 0); seed++) {
		struct sim_stats one = run(seed);
		sim_stats_add(&sum, &one);
	}
	assert_true(sum.commits > 200);
	assert_true(sum.fetched_snapshots > 0 && sum.fetched_logs > 0 && sum.torn_writes > 0);
	assert_true(sum.named > 0 && sum.faded > 0 && sum.own_files > 0);
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		if (is_missing(&sum, i))
			fail_msg("no fault of the kind '%s'", sim_fault_names[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_seed_replays),
		cmocka_unit_test(test_faults_do_happen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
