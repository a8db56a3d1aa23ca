/* test_sim_shrink.c: a universe in which a planted bug shows is shrunk to faults that suffice, each
 * of them needed. */
#include "sim_runner.h"

#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

bool rv_planted_bug(const char *name) {
	return strcmp(name, "double-count") == 0;
}

static bool fails(const struct sim_options *opt, struct sim_plan *plan) {
	struct sim_stats stats;
	char why[1024];
	return !sim_run(opt, plan, false, &stats, why);
}

/* The first seed that the bug shows in. */
static struct sim_options failing_universe(struct sim_plan *plan) {
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct sim_options opt = sim_options_of(seed);
		if (opt.n_workers > 6)
			continue;
		sim_plan_of(&opt, plan);
		if (fails(&opt, plan))
			return opt;
	}
	fail_msg("the planted bug does not show");
	return (struct sim_options){0};
}

static int count(const bool set[SIM_MAX_FAULTS]) {
	int n = 0;
	for (int i = 0; i < SIM_MAX_FAULTS; i++)
		n += set[i];
	return n;
}

static void test_each_fault_that_is_left_is_needed(void **state) {
	(void)state;
	struct sim_plan *plan = sim_alloc(sizeof *plan);
	struct sim_options opt = failing_universe(plan);
	int happened = count(plan->happened), tries = 0;
	char why[1024];
	const struct rv_events_config quiet = {.out = stderr, .json = true, .level = RV_ERROR};
	struct rv_events *events;
	assert_int_equal(rv_events_new(&quiet, &events, NULL), RV_OK);
	assert_int_equal(shrink(&opt, plan, events, why, &tries, NULL), RV_OK);
	assert_true(count(plan->chosen) < happened);
	assert_true(fails(&opt, plan));
	for (int i = 0; i < plan->n; i++) {
		if (!plan->chosen[i])
			continue;
		plan->chosen[i] = false;
		assert_false(fails(&opt, plan));
		plan->chosen[i] = true;
	}
	rv_events_free(events);
	free(plan);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_fault_that_is_left_is_needed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
