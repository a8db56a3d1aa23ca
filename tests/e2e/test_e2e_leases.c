/* test_e2e_leases.c: members of a run read a published text, several passes of it, in a run in
 * which nothing happens, and in one whose coordinator is killed: replayed from their traces, every
 * sequence of a whole pass is in one committed contribution, and none is in two. */
#include "ends.h"
#include "leased.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>

/* The lab leases as the coordinator does. */
static void check_quiet_run(void **state, const char *run) {
	static struct e2e e;
	char chain[65], full[65];
	int64_t sequences;
	*state = &e;
	leased_open(&e, run, 4);
	e2e_start_workers(&e, 4);
	e2e_assert_labs_end(&e, 4, chain, full);
	const int64_t passes = leased_assert_replayed(&e, 4, chain, full, &sequences);
	assert_int_equal(sequences, LEASED_ROUNDS * 4 * LEASED_OF_ROUND);
	assert_true(passes >= 5);
}

static void a_run_without_incidents_is_the_labs(void **state) {
	check_quiet_run(state, LEASED_ALL_FOUR);
}

static void so_is_one_with_steps_ahead(void **state) {
	check_quiet_run(state, LEASED_ALL_FOUR "overlap-steps = 2\n");
}

/* A coordinator that is killed grants again what its records say. */
static void the_coordinator_is_killed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	int64_t sequences;
	*state = &e;
	leased_open(&e, LEASED_ANY_TWO, 3);
	e2e_gate_at(&e, 20);
	e2e_start_gated_workers(&e, 3);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 12);
	process_signal(&e.coordinator, SIGKILL);
	process_assert_exit(&e.coordinator, 128 + SIGKILL);
	e2e_start_coordinator(&e);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	assert_true(leased_assert_replayed(&e, 3, chain, full, &sequences) >= 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_run_without_incidents_is_the_labs, e2e_teardown),
		cmocka_unit_test_teardown(so_is_one_with_steps_ahead, e2e_teardown),
		cmocka_unit_test_teardown(the_coordinator_is_killed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
