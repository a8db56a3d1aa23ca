/* test_e2e_leases_killed.c: members of a run read a published text, several passes of it, while
 * some are killed, come back, or stay away: replayed from their traces, every sequence of a whole
 * pass is in one committed contribution, and none is in two. */
#include "ends.h"
#include "leased.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>

static void kill_worker(struct e2e *e, int worker) {
	process_signal(&e->workers[worker], SIGKILL);
	process_assert_exit(&e->workers[worker], 128 + SIGKILL);
}

/* Starts all four, and lets them go on to round 15 when each has reported that it trains. Rounds go
 * on with two, and the leases of a member that joined and has not reported for four rounds are
 * free: returns the line of the coordinator's log behind those that say so. */
static long start_all(struct e2e *e) {
	long from = 0;
	e2e_gate_at(e, 2);
	e2e_start_gated_workers(e, 4);
	e2e_wait_nearly_level(e, 4);
	for (json_t *j; (j = e2e_find_event(e->coordinator.log, "leases_free", NULL, 0, &from)) != NULL;)
		json_decref(j);
	e2e_gate_at(e, 15);
	return from;
}

/* One is killed and comes back later, one is killed and stays away: others read what it held. The
 * run must not end before the dead one's leases are free. */
static void check_incidents(void **state, const char *run) {
	static struct e2e e;
	char chain[65], full[65];
	int64_t sequences;
	*state = &e;
	leased_open(&e, run, 4);
	long from = start_all(&e);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 10);
	kill_worker(&e, 3);
	e2e_gate_at(&e, 20);
	json_decref(e2e_wait_event(&e.coordinator, "leases_free", NULL, 0, &from)); /* what 3 held is free */
	e2e_gate_at(&e, 30);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 20);
	kill_worker(&e, 2);
	e2e_gate_at(&e, 60);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 32);
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	e2e_wait_nearly_level(&e, 3);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	const int64_t passes = leased_assert_replayed(&e, 4, chain, full, &sequences);
	print_message("%d sequences, %d whole passes\n", (int)sequences, (int)passes);
	assert_true(sequences > 3 * LEASED_PASS && passes >= 3);
}

static void every_sequence_is_read_once_though_members_die(void **state) {
	check_incidents(state, LEASED_ANY_TWO);
}

static void with_steps_ahead_too(void **state) {
	check_incidents(state, LEASED_ANY_TWO "overlap-steps = 2\n");
}

static void and_where_late_steps_are_discarded(void **state) {
	check_incidents(state, LEASED_ANY_TWO "late = discard\n");
}

static void and_with_eager_updates(void **state) {
	check_incidents(state, LEASED_ANY_TWO "updates = eager\neager-share = 0.25\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_sequence_is_read_once_though_members_die, e2e_teardown),
		cmocka_unit_test_teardown(with_steps_ahead_too, e2e_teardown),
		cmocka_unit_test_teardown(and_where_late_steps_are_discarded, e2e_teardown),
		cmocka_unit_test_teardown(and_with_eager_updates, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
