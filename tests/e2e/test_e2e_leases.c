/* test_e2e_leases.c: members of a run read a published text, several passes of it, while some are
 * killed, come back, or stay away: replayed from their traces, every sequence of a whole pass is in
 * one committed contribution, and none is in two. */
#include "ends.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>

/* 6 of 8 blocks are for training, of 255 sequences each: a pass. A member reads 32 in a round. */
enum { BLOCKS = 8, PASS = 6 * 255, OF_ROUND = 32 };
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 64\nbatch = 8\nsteps-per-round = 4\nrounds = 66\n"                \
	"snapshot-every = 10\n"
#define ALL_FOUR RUN "min-workers = 4\n" E2E_PATIENT
#define ANY_TWO  RUN "min-workers = 2\n" E2E_STEADY
static const char patient[] = ALL_FOUR, ahead_patient[] = ALL_FOUR "overlap-steps = 2\n", config[] = ANY_TWO,
				  overlapped[] = ANY_TWO "overlap-steps = 2\n", discarding[] = ANY_TWO "late = discard\n",
				  eager[] = ANY_TWO "updates = eager\neager-share = 0.25\n";

static void kill_worker(struct e2e *e, int worker) {
	process_signal(&e->workers[worker], SIGKILL);
	process_assert_exit(&e->workers[worker], 128 + SIGKILL);
}

/* Replays the run, which counts what committed contributions have read: no position twice. Returns
 * how many whole passes are in them. */
static int64_t assert_replayed(struct e2e *e, int n, const char *chain, const char *full, int64_t *sequences) {
	char log[E2E_PATH];
	e2e_assert_replayed(e, n, chain, full);
	e2e_path(e, "replay.log", log);
	json_t *event = e2e_find_event(log, "replayed", NULL, 0, NULL);
	const int64_t passes = e2e_int(event, "passes");
	*sequences = e2e_int(event, "sequences");
	assert_int_equal(passes, e2e_int(event, "read_until") / PASS);
	json_decref(event);
	return passes;
}

/* The lab leases as the coordinator does. */
static void check_quiet_run(void **state, const char *run) {
	static struct e2e e;
	char chain[65], full[65];
	int64_t sequences;
	*state = &e;
	e2e_open_published(&e, run, BLOCKS, 4);
	e2e_start_workers(&e, 4);
	e2e_assert_labs_end(&e, 4, chain, full);
	const int64_t passes = assert_replayed(&e, 4, chain, full, &sequences);
	assert_int_equal(sequences, 66 * 4 * OF_ROUND);
	assert_true(passes >= 5);
}

static void a_run_without_incidents_is_the_labs(void **state) {
	check_quiet_run(state, patient);
}

static void so_is_one_with_steps_ahead(void **state) {
	check_quiet_run(state, ahead_patient);
}

/* Starts all four, and lets them go on to round 15 when each has reported that it trains. Rounds go
 * on with two, and the leases of a member that joined and has not reported for four rounds are
 * free: returns the line of the coordinator's log behind those that say so. */
static long start_all(struct e2e *e) {
	long from = 0;
	e2e_gate_at(e, 2);
	e2e_start_gated_workers(e, 4);
	e2e_wait_level(e, 4);
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
	e2e_open_published(&e, run, BLOCKS, 4);
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
	e2e_wait_level(&e, 3);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	const int64_t passes = assert_replayed(&e, 4, chain, full, &sequences);
	print_message("%d sequences, %d whole passes\n", (int)sequences, (int)passes);
	assert_true(sequences > 3 * PASS && passes >= 3);
}

static void every_sequence_is_read_once_though_members_die(void **state) {
	check_incidents(state, config);
}

static void with_steps_ahead_too(void **state) {
	check_incidents(state, overlapped);
}

static void and_where_late_steps_are_discarded(void **state) {
	check_incidents(state, discarding);
}

static void and_with_eager_updates(void **state) {
	check_incidents(state, eager);
}

/* A coordinator that is killed grants again what its records say. */
static void the_coordinator_is_killed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	int64_t sequences;
	*state = &e;
	e2e_open_published(&e, config, BLOCKS, 3);
	e2e_gate_at(&e, 20);
	e2e_start_gated_workers(&e, 3);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 12);
	process_signal(&e.coordinator, SIGKILL);
	process_assert_exit(&e.coordinator, 128 + SIGKILL);
	e2e_start_coordinator(&e);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	assert_true(assert_replayed(&e, 3, chain, full, &sequences) >= 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_run_without_incidents_is_the_labs, e2e_teardown),
		cmocka_unit_test_teardown(so_is_one_with_steps_ahead, e2e_teardown),
		cmocka_unit_test_teardown(every_sequence_is_read_once_though_members_die, e2e_teardown),
		cmocka_unit_test_teardown(with_steps_ahead_too, e2e_teardown),
		cmocka_unit_test_teardown(and_where_late_steps_are_discarded, e2e_teardown),
		cmocka_unit_test_teardown(and_with_eager_updates, e2e_teardown),
		cmocka_unit_test_teardown(the_coordinator_is_killed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
