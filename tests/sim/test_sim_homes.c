/* test_sim_homes.c: every kind of home beside every other one, with routers that answer and routers
 * that are silent: two members of them meet within seconds, by the way that is the best there, and
 * commit every round. */
#include "sim_runner.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROUNDS = 10 };

struct trial {
	struct sim_options opt;
	struct sim_plan plan;
};

static void add_home(struct trial *t, uint64_t set, enum sim_home_kind kind, uint32_t traits) {
	struct sim_fault *f = &t->plan.faults[t->plan.n];
	*f = (struct sim_fault){.kind = FAULT_HOME, .set = set, .amount = kind, .moment = traits};
	t->plan.chosen[t->plan.n++] = true;
}

static void begin(struct trial *t, int n_workers) {
	memset(t, 0, sizeof *t);
	t->opt = sim_options_plain();
	t->opt.n_workers = n_workers;
	t->opt.min_workers = (uint32_t)n_workers;
	t->opt.rounds = ROUNDS;
	t->opt.relay = 1;
}

static struct sim_stats run(struct trial *t, const char *what) {
	struct sim_stats stats;
	char why[1024];
	if (!sim_run(&t->opt, &t->plan, false, &stats, why))
		fail_msg("%s: %s", what, why);
	return stats;
}

/* The best way of two homes: directly, where one of them is dialed; punched, where the routers of
 * both keep to one mapping or let in by address; else relayed. */
enum way { DIRECT, PUNCHED, RELAYED };

static bool is_dialed(enum sim_home_kind kind) {
	return kind == HOME_OPEN || kind == HOME_FULL_CONE;
}

static bool is_strict(enum sim_home_kind kind) {
	return kind == HOME_PORT || kind == HOME_DOUBLE || kind == HOME_SYMMETRIC;
}

static enum way best_way(enum sim_home_kind a, enum sim_home_kind b) {
	if ((a == HOME_V6_ONLY) != (b == HOME_V6_ONLY))
		return RELAYED;
	if (is_dialed(a) || is_dialed(b))
		return DIRECT;
	if ((a == HOME_SYMMETRIC && is_strict(b)) || (b == HOME_SYMMETRIC && is_strict(a)))
		return RELAYED;
	return PUNCHED;
}

static void check_pair(enum sim_home_kind a, enum sim_home_kind b, uint32_t traits) {
	enum { MEET_MS = 6000 };
	struct trial t;
	char what[96];
	enum way best = best_way(a, b);
	(void)snprintf(what, sizeof what, "%s with %s%s%s", sim_home_names[a], sim_home_names[b],
				   traits & HOME_RESETS ? ", resets" : "", traits & HOME_MOVES ? ", other ports" : "");
	begin(&t, 2);
	add_home(&t, 1, a, traits);
	add_home(&t, 2, b, traits);
	struct sim_stats stats = run(&t, what);
	if (stats.commits != ROUNDS || stats.commits_with_all != ROUNDS)
		fail_msg("%s: %llu commits, %llu with both", what, (unsigned long long)stats.commits,
				 (unsigned long long)stats.commits_with_all);
	if (stats.slowest_ms > MEET_MS)
		fail_msg("%s: they met after %llu ms", what, (unsigned long long)stats.slowest_ms);
	bool may_be_relayed = best == RELAYED || (traits & HOME_RESETS) != 0;
	if (stats.met_relayed > 0 && !may_be_relayed)
		fail_msg("%s: they met at the relay", what);
	if (stats.met_punched > 0 && best == RELAYED)
		fail_msg("%s: they punched, and cannot", what);
	if (best == PUNCHED && is_strict(a) && is_strict(b) && !may_be_relayed)
		assert_true(stats.met_punched >= 1);
	if (best == RELAYED)
		assert_true(stats.met_relayed >= 2 && stats.relayed_bytes > 0);
}

static void test_every_kind_meets_every_other(void **state) {
	(void)state;
	for (uint32_t traits = 0; traits < 8; traits++)
		for (int a = 0; a < SIM_HOME_KINDS; a++)
			for (int b = a; b < SIM_HOME_KINDS; b++)
				if ((traits & HOME_HAIRPINS) == 0)
					check_pair((enum sim_home_kind)a, (enum sim_home_kind)b, traits);
}

static void test_two_in_one_home_meet_inside(void **state) {
	(void)state;
	for (int kind = HOME_FULL_CONE; kind < HOME_V6_ONLY; kind++) {
		struct trial t;
		begin(&t, 2);
		add_home(&t, 3, (enum sim_home_kind)kind, 0);
		struct sim_stats stats = run(&t, sim_home_names[kind]);
		assert_int_equal(stats.commits_with_all, ROUNDS);
		assert_int_equal(stats.relayed_bytes, 0);
	}
}

static void test_all_kinds_commit_every_round(void **state) {
	(void)state;
	struct trial t;
	begin(&t, SIM_HOME_KINDS);
	for (int kind = 0; kind < SIM_HOME_KINDS; kind++)
		add_home(&t, UINT64_C(1) << kind, (enum sim_home_kind)kind, kind % 2 ? HOME_V6 : 0);
	struct sim_stats stats = run(&t, "all kinds");
	assert_int_equal(stats.commits_with_all, ROUNDS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_meets_every_other),
		cmocka_unit_test(test_two_in_one_home_meet_inside),
		cmocka_unit_test(test_all_kinds_commit_every_round),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
