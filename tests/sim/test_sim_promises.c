/* test_sim_promises.c: how long the run stands still, in virtual time, when a certain thing goes
 * wrong and nothing else: universes that differ in the moment at which it does. The oracle holds
 * all the while, and all of them end. */
#include "sim_runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Everybody is there, and nobody is about to finish, for so long: some start up to 30 s late. The
 * moments are spread over a round. */
enum { FROM_US = 35 * SIM_S, MOMENTS = 8, BETWEEN_US = 197 * SIM_MS, ROUNDS = 60 };

struct trial {
	struct sim_options opt;
	struct sim_plan plan;
};

/* Rounds of about a second and a half. */
static void begin(struct trial *t, uint64_t seed, int n_workers, uint32_t min_workers) {
	memset(t, 0, sizeof *t);
	t->opt = sim_options_of(seed);
	t->opt.calm = t->opt.mixed = t->opt.by_time = t->opt.gives_away = false; /* that is all steps ahead */
	t->opt.n_workers = n_workers;
	t->opt.min_workers = min_workers;
	t->opt.row_size = NET_MAX_ROW;
	t->opt.rounds = ROUNDS;
	t->opt.steps_per_round = 6;
	t->opt.overlap_steps = t->opt.overlap_steps > 2 ? 2 : t->opt.overlap_steps;
	t->opt.snapshot_every = 4;
	t->opt.keep_snapshots = 2;
	t->opt.n_params = 3000;
	t->opt.fragments = 1;
	t->opt.chunk_elems = 256;
	t->opt.capped = 0;
	t->opt.mix = 0;
	t->opt.step_us = 150 * SIM_MS;
	t->opt.delay_us = 20 * SIM_MS;
	t->opt.jitter_us = 10 * SIM_MS;
	t->opt.slowest_bytes_per_s = 1e6;
	t->opt.safety_us = 600 * SIM_S;
}

static struct sim_fault *add(struct trial *t, enum sim_fault_kind kind, int host, int64_t at_us, int64_t lasts_us) {
	struct sim_fault *f = &t->plan.faults[t->plan.n];
	*f = (struct sim_fault){.kind = (uint8_t)kind, .host = (uint16_t)host, .at_us = at_us, .lasts_us = lasts_us};
	t->plan.chosen[t->plan.n++] = true;
	return f;
}

static struct sim_stats run(struct trial *t) {
	struct sim_stats stats;
	char why[1024];
	if (!sim_run(&t->opt, &t->plan, false, &stats, why))
		fail_msg("seed %llu: %s", (unsigned long long)t->opt.seed, why);
	for (int i = 0; i < t->plan.n; i++)
		assert_true(t->plan.happened[i]);
	return stats;
}

static int commits_between(const struct trial *t, int64_t from_us, int64_t until_us) {
	int n = 0;
	for (int r = 0; r < ROUNDS; r++)
		n += t->plan.committed_us[r] > from_us && t->plan.committed_us[r] <= until_us;
	return n;
}

static int64_t first_commit_after(const struct trial *t, int64_t at_us) {
	for (int r = 0; r < ROUNDS; r++)
		if (t->plan.committed_us[r] > at_us)
			return t->plan.committed_us[r];
	return INT64_MAX;
}

/* The longest time without a commit that ends in (from, until]; that before the first one does not
 * count. */
static int64_t longest_gap(const struct trial *t, int64_t from_us, int64_t until_us) {
	int64_t longest = 0;
	for (int r = 1; r < ROUNDS; r++) {
		int64_t at = t->plan.committed_us[r], gap = at - t->plan.committed_us[r - 1];
		if (at > from_us && at <= until_us && gap > longest)
			longest = gap;
	}
	return longest;
}

/* They finish their steps and the all-reduce, hold, and go on within seconds of its return. */
static void the_coordinator_is_gone_for_an_hour(void **state) {
	(void)state;
	enum { HOUR_US_BY_S = 3600, SECONDS = 5 };
	int64_t slowest = 0;
	for (int k = 0; k < MOMENTS; k++) {
		struct trial t;
		int64_t at = FROM_US + k * (int64_t)BETWEEN_US, back = at + HOUR_US_BY_S * (int64_t)SIM_S;
		begin(&t, 100 + (uint64_t)k, 6, 4);
		(void)add(&t, FAULT_HOUR, SIM_COORDINATOR, at, back - at);
		(void)run(&t);
		assert_int_equal(commits_between(&t, at + SIM_S, back), 0);
		int64_t waited = first_commit_after(&t, back) - back;
		slowest = waited > slowest ? waited : slowest;
		if (waited > SECONDS * SIM_S)
			fail_msg("moment %d: the next commit came %.1f s after its return", k, (double)waited / SIM_S);
	}
	print_message("the next commit came %.2f s after the coordinator's return, at most\n", (double)slowest / SIM_S);
}

/* So many machines lose power in the same instant: the others go on without them. */
static void lose_at_once(int n, int lost) {
	enum { AWAY_S = 60, WATCHED_S = 30, STANDS_STILL_S = 5 };
	int64_t slowest = 0, usual = 0;
	for (int k = 0; k<MOMENTS; k += n> 9 ? 2 : 1) {
		struct trial t;
		int64_t at = FROM_US + k * (int64_t)BETWEEN_US;
		begin(&t, 200 + (uint64_t)k, n, (uint32_t)(n - lost));
		for (int i = 0; i < lost; i++)
			(void)add(&t, FAULT_POWER_CUT, i * n / lost, at, AWAY_S * (int64_t)SIM_S);
		(void)run(&t);
		int64_t before = longest_gap(&t, at - 10 * SIM_S, at);
		int64_t gap = longest_gap(&t, at, at + WATCHED_S * (int64_t)SIM_S);
		usual = before > usual ? before : usual;
		slowest = gap > slowest ? gap : slowest;
		assert_true(commits_between(&t, at, at + WATCHED_S * (int64_t)SIM_S) > 5);
		if (gap > before + STANDS_STILL_S * SIM_S)
			fail_msg("%d of %d, moment %d: %.1f s without a commit", lost, n, k, (double)gap / SIM_S);
	}
	print_message("%d of %d at once: %.2f s without a commit at most, %.2f s before\n", lost, n,
				  (double)slowest / SIM_S, (double)usual / SIM_S);
}

static void two_at_once(void **state) {
	(void)state;
	lose_at_once(9, 2);
}

static void a_third_at_once(void **state) {
	(void)state;
	lose_at_once(9, 3);
	lose_at_once(5, 1);
	lose_at_once(18, 6);
}

/* No round begins and none is committed below min_workers, but the one that all who are left hold;
 * when enough are back it goes on by itself. */
static void below_min_workers(void **state) {
	(void)state;
	enum { AWAY_S = 100, SECONDS = 15 };
	for (int k = 0; k < MOMENTS; k++) {
		struct trial t;
		int64_t at = FROM_US + k * (int64_t)BETWEEN_US, back = at + AWAY_S * (int64_t)SIM_S;
		begin(&t, 300 + (uint64_t)k, 5, 4);
		(void)add(&t, FAULT_POWER_CUT, 1, at, back - at);
		(void)add(&t, FAULT_POWER_CUT, 3, at, back - at);
		(void)run(&t);
		assert_in_range(commits_between(&t, at, back), 0, 1);
		assert_int_equal(commits_between(&t, at + 10 * SIM_S, back), 0);
		if (first_commit_after(&t, back) - back > SECONDS * SIM_S)
			fail_msg("moment %d: the next commit came %.1f s after they were back", k,
					 (double)(first_commit_after(&t, back) - back) / SIM_S);
	}
}

/* A machine comes back with an empty disk, over a line of a fiftieth of the others': rounds go on
 * as before, but for one that may wait for it when it is nearly there, as long as for a silent
 * member (decision 0024). */
static void nobody_waits_for_a_joiner(void **state) {
	(void)state;
	enum { DOWN_S = 5, SETTLED_S = 10, WATCHED_S = 40, JOINER = 2, SILENT_S = 2 };
	for (int k = 0; k < MOMENTS; k++) {
		struct trial t;
		int64_t at = FROM_US + k * (int64_t)BETWEEN_US, settled = at + SETTLED_S * (int64_t)SIM_S;
		begin(&t, 400 + (uint64_t)k, 5, 3);
		add(&t, FAULT_WIPE, JOINER, at, DOWN_S * (int64_t)SIM_S)->reckless = true;
		add(&t, FAULT_SLOW_LINE, JOINER, at, 200 * (int64_t)SIM_S)->amount = 0.02;
		struct sim_stats stats = run(&t);
		assert_true(stats.fetched_snapshots + stats.fetched_logs > 0);
		int64_t before = longest_gap(&t, at - 12 * SIM_S, at);
		int64_t gap = longest_gap(&t, settled, settled + WATCHED_S * (int64_t)SIM_S);
		if (gap > before + (1 + SILENT_S) * SIM_S)
			fail_msg("moment %d: %.2f s without a commit while it joins, %.2f s before", k, (double)gap / SIM_S,
					 (double)before / SIM_S);
	}
}

/* From the first commit to the last, of a run in which `kind` goes on from its start to its end. */
static int64_t run_with(uint64_t seed, enum sim_fault_kind kind, int host, double amount) {
	struct trial t;
	begin(&t, seed, 5, 3);
	if (kind != SIM_FAULT_KINDS)
		add(&t, kind, host, 0, 0)->amount = amount;
	(void)run(&t);
	return t.plan.committed_us[ROUNDS - 1] - t.plan.committed_us[0];
}

/* One of five holds the others up for the whole of 60 rounds. With doubling exclusion it is in six
 * of them, of which each costs what it takes to find it out: the stall time of 4 s; where it says
 * that it waits, the deadline of an attempt of 16 s and that; grace of 2 s. And as much again for
 * what follows from an attempt that fails. */
static void one_that_holds_the_others_up(void **state) {
	(void)state;
	enum { TIMES = 6, SEEDS = 5 };
	static const struct {
		enum sim_fault_kind kind;
		double amount;
		int64_t each_us;
	} cases[] = {{FAULT_WITHHOLDER, 0, 4 * SIM_S}, {FAULT_WITHHOLDER, 1, 20 * SIM_S}, {FAULT_GHOST, 0, 2 * SIM_S}};
	for (int k = 0; k < SEEDS; k++) {
		const uint64_t seed = 500 + (uint64_t)k;
		int64_t alone = run_with(seed, SIM_FAULT_KINDS, 0, 0);
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			int64_t cost = run_with(seed, cases[i].kind, k % SEEDS, cases[i].amount) - alone;
			print_message("%s %g: %.1f s more than %.1f s\n", sim_fault_names[cases[i].kind], cases[i].amount,
						  (double)cost / SIM_S, (double)alone / SIM_S);
			if (cost > 2 * TIMES * cases[i].each_us)
				fail_msg("seed %d: %s costs %.1f s", k, sim_fault_names[cases[i].kind], (double)cost / SIM_S);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_coordinator_is_gone_for_an_hour),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(a_third_at_once),
		cmocka_unit_test(below_min_workers),
		cmocka_unit_test(nobody_waits_for_a_joiner),
		cmocka_unit_test(one_that_holds_the_others_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
