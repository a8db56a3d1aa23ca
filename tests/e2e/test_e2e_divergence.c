/* test_e2e_divergence.c: a bit of one real worker's theta flips. The next look at the full hashes
 * names that worker and nobody else; it takes the state of its peers, takes part again, and all end
 * with the same bits. */
#include "ends.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

/* Nobody is left out, however slow the machine: the run even waits for the one that is wrong. */
static const char run[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
						  "min-workers = 4\nsteps-per-round = 4\nrounds = 17\nsnapshot-every = 4\n" E2E_PATIENT;

enum { VICTIM = 3, FLIPPED_AT = 6, LOOKED_AT = 8, WORKERS = 4 };

/* The only member that the coordinator ever named. */
static void assert_only_victim_named(struct e2e *e) {
	long from = 0;
	int named = 0;
	for (json_t *j; (j = e2e_find_event(e->coordinator.log, "diverged", NULL, 0, &from)); json_decref(j)) {
		assert_non_null(strstr(e2e_text(j, "text"), "member 3 "));
		named++;
	}
	assert_int_equal(named, 1);
	for (int i = 0; i < WORKERS; i++) {
		json_t *j = e2e_find_event(e->workers[i].log, "wrong_state", NULL, 0, NULL);
		assert_int_equal(j != NULL, i == VICTIM);
		json_decref(j);
	}
}

static void a_flipped_bit_is_found_and_repaired(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, run, WORKERS);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, VICTIM, "rivulet-worker-flip", "RIVULET_FLIP=6");
	json_t *j = e2e_wait_event(&e.workers[VICTIM], "flipped", NULL, 0, NULL);
	assert_int_equal(e2e_int(j, "round"), FLIPPED_AT);
	json_decref(j);

	long from = 0;
	j = e2e_wait_event(&e.workers[VICTIM], "wrong_state", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(j, "text"), "differs from the majority's"));
	json_decref(j);
	json_decref(e2e_wait_event(&e.workers[VICTIM], "installed", "round", LOOKED_AT, &from));
	json_decref(e2e_wait_event(&e.workers[VICTIM], "attempt", "round", LOOKED_AT, &from)); /* takes part again */
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, VICTIM}, WORKERS, chain, full);
	assert_only_victim_named(&e);
}

/* The flip is after the last snapshot: the end state is looked at too. */
static void a_bit_that_flips_in_the_last_round_does_not_leave_with_the_result(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, run, WORKERS);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, VICTIM, "rivulet-worker-flip", "RIVULET_FLIP=17");
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, VICTIM}, WORKERS, chain, full);
	json_decref(e2e_wait_event(&e.workers[VICTIM], "flipped", NULL, 0, NULL));
	json_decref(e2e_wait_event(&e.workers[VICTIM], "installed", "round", 17, NULL));
	assert_only_victim_named(&e);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_flipped_bit_is_found_and_repaired, e2e_teardown),
		cmocka_unit_test_teardown(a_bit_that_flips_in_the_last_round_does_not_leave_with_the_result, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
