/* test_e2e_several.c: a third of the workers die at once in the middle of an all-reduce: the round commits without
 * them. Too few are left: the round holds, untouched, and goes on by itself when one is back.
 */
#include "e2e.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORKERS = 6, LOST = WORKERS / 3, MIN_WORKERS = 3 };

static const char endless[] = "n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 32\nbatch = 2\ndata-shards = 6\n"
							  "min-workers = 3\nsteps-per-round = 3\nrounds = 100000\nsnapshot-every = 4\n" E2E_STEADY;
#define FREEZE_IN_THE_MIDDLE "RIVULET_FAILPOINT=reduce.scatter-mid@3=stop"

/* The last worker freezes in the middle of an all-reduce; returns the round. */
static int64_t wait_for_the_middle(struct e2e *e, int worker) {
	int64_t round = -1;
	long from = 0;
	json_decref(e2e_wait_event(&e->workers[worker], "failpoint", NULL, 0, NULL));
	for (json_t *j; (j = e2e_find_event(e->workers[worker].log, "attempt", NULL, 0, &from)); json_decref(j))
		round = e2e_int(j, "round");
	assert_true(round >= 0);
	return round;
}

/* Round `round` as each of the first n workers applied it: the same chain, so many participants. */
static void assert_committed_alike(struct e2e *e, int n, int64_t round, int participants) {
	char chain[80] = "";
	for (int i = 0; i < n; i++) {
		json_t *j = e2e_wait_event(&e->workers[i], "round", "round", round + 1, NULL);
		assert_int_equal(e2e_int(j, "round"), round + 1);
		if (participants > 0)
			assert_int_equal(e2e_int(j, "participants"), participants);
		if (i > 0)
			assert_string_equal(e2e_text(j, "chain"), chain);
		snprintf(chain, sizeof chain, "%s", e2e_text(j, "chain"));
		json_decref(j);
	}
}

static void a_third_dies_at_once(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, WORKERS);
	e2e_start_workers(&e, WORKERS - 1);
	e2e_start_worker(&e, WORKERS - 1, "rivulet-worker-failpoint", FREEZE_IN_THE_MIDDLE);
	int64_t round = wait_for_the_middle(&e, WORKERS - 1);
	for (int i = WORKERS - LOST; i < WORKERS; i++)
		e2e_signal(&e.workers[i], SIGKILL);
	for (int i = WORKERS - LOST; i < WORKERS; i++)
		e2e_assert_exit(&e.workers[i], 128 + SIGKILL);
	assert_committed_alike(&e, WORKERS - LOST, round, 0);
	assert_committed_alike(&e, WORKERS - LOST, round + 1, WORKERS - LOST);
}

static void below_the_least_number_the_round_holds(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, MIN_WORKERS);
	e2e_start_workers(&e, MIN_WORKERS - 1);
	e2e_start_worker(&e, MIN_WORKERS - 1, "rivulet-worker-failpoint", FREEZE_IN_THE_MIDDLE);
	int64_t round = wait_for_the_middle(&e, MIN_WORKERS - 1);
	e2e_signal(&e.workers[MIN_WORKERS - 1], SIGKILL);
	e2e_assert_exit(&e.workers[MIN_WORKERS - 1], 128 + SIGKILL);
	json_decref(e2e_wait_event(&e.coordinator, "suspected", NULL, 0, NULL));
	for (int i = 0; i < MIN_WORKERS - 1; i++) /* nothing was committed without it */
		assert_null(e2e_find_event(e.workers[i].log, "round", "round", round + 1, NULL));
	e2e_start_worker(&e, MIN_WORKERS - 1, NULL, NULL);
	assert_committed_alike(&e, MIN_WORKERS, round, MIN_WORKERS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_third_dies_at_once, e2e_teardown),
		cmocka_unit_test_teardown(below_the_least_number_the_round_holds, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
