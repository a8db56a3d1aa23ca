/* test_e2e_join.c: workers that join while the run goes on, and one that was killed and comes back.
 * (Several donors, of whom one lies and one is killed: tests/sim/planted.) */
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <string.h>

/* 0.4 M parameters: a snapshot of 14 pieces, as much as 8 log entries: later than that a joiner
 * takes a snapshot. */
#define MODEL                                                                                                          \
	"n-layer = 2\nn-head = 2\nn-embd = 128\ncontext = 16\nbatch = 1\ndata-shards = 4\n"                                \
	"min-workers = 4\nsteps-per-round = 1\nrounds = 100000\nsnapshot-every = 4\n"
static const char never_missed[] = MODEL "grace-ms = 600000\nsilence-ms = 240000\n"; /* longer than a test waits */
static const char one_suffices[] =
	"n-layer = 1\nn-head = 2\nn-embd = 64\ncontext = 16\nbatch = 1\ndata-shards = 2\nmin-workers = 1\n"
	"steps-per-round = 4\nrounds = 100000\nsnapshot-every = 4\n" E2E_STEADY;

/* Each round is a snapshot. */
enum { FIRST_SNAPSHOT = 12, LATER_SNAPSHOT = 20 };
#define SNAPSHOTS                                                                                                      \
	"n-layer = 2\nn-head = 2\nn-embd = 128\ncontext = 16\nbatch = 1\ndata-shards = 4\n"                                \
	"min-workers = 2\nsteps-per-round = 4\nrounds = 100000\nsnapshot-every = 1\n" E2E_PATIENT
static const char snapshots_all_the_time[] = SNAPSHOTS, snapshots_and_fragments[] = SNAPSHOTS "fragments = 2\n";

static void kill_worker(struct e2e *e, int i) {
	process_signal(&e->workers[i], SIGKILL);
	process_assert_exit(&e->workers[i], 128 + SIGKILL);
}

static void wait_for_round(struct e2e *e, int i, int64_t round) {
	json_decref(e2e_wait_event(&e->workers[i], "round", "round", round, NULL));
}

static void assert_same_chain(struct e2e *e, int a, int b, int64_t round) {
	e2e_assert_same_chain(e, (const int[]){a, b}, 2, round);
}

/* Behind a router that nothing is forwarded through, the address that the coordinator hands out
 * leads nowhere. The one that has the state dials the one that needs it. */
static void from_a_donor_that_cannot_be_dialed(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, one_suffices, 2);
	e.worker_args[0] = "--advertise";
	e.worker_args[1] = "127.0.0.1:1";
	e2e_start_worker(&e, 0, NULL, NULL);
	wait_for_round(&e, 0, 9);
	e.worker_args[0] = e.worker_args[1] = NULL;
	e2e_start_worker(&e, 1, NULL, NULL);
	int64_t held = e2e_latest_round(&e, 0);
	wait_for_round(&e, 1, held + 3);
	assert_same_chain(&e, 0, 1, held + 3);
}

static void the_same_identity_is_welcome_at_once(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, never_missed, 4);
	e2e_start_workers(&e, 4);
	wait_for_round(&e, 0, 3);
	kill_worker(&e, 3);
	e2e_start_worker(&e, 3, NULL, NULL);
	int64_t before = e2e_latest_round(&e, 0);
	wait_for_round(&e, 0, before + 3); /* it takes all four: its former life is not waited for */
	assert_same_chain(&e, 0, 3, before + 3);
}

/* Until the coordinator has a report that the member made when some of its snapshot had come: so
 * all keep that snapshot. */
static void wait_until_it_fetches(struct e2e *e, size_t member) {
	int64_t got = 0;
	for (int tries = 0; got < 1 << 16 && tries < 10 * PROCESS_WAIT_S; tries++) {
		json_t *status = e2e_status(e);
		got = e2e_int(json_array_get(json_object_get(status, "members"), member), "rx_bytes");
		json_decref(status);
	}
	assert_in_range(got, 1 << 16, INT64_MAX);
}

/* A snapshot takes some seconds on the joiner's line, and before it has come there are newer ones:
 * it is frozen meanwhile. */
static void check_long_snapshot(void **state, const char *run) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, run, 3);
	e.worker_args[0] = "--keep-log";
	e.worker_args[1] = "4";
	e2e_gate_at(&e, FIRST_SNAPSHOT);
	e2e_start_gated_workers(&e, 2);
	wait_for_round(&e, 0, FIRST_SNAPSHOT);
	e.worker_args[0] = "--max-down";
	e.worker_args[1] = "8mbit";
	e2e_start_worker(&e, 2, NULL, NULL);
	wait_until_it_fetches(&e, 2);
	process_signal(&e.workers[2], SIGSTOP);
	e2e_gate_at(&e, LATER_SNAPSHOT);
	wait_for_round(&e, 0, LATER_SNAPSHOT);
	process_signal(&e.workers[2], SIGCONT);
	json_t *installed = e2e_wait_event(&e.workers[2], "installed", NULL, 0, NULL);
	assert_in_range(e2e_int(installed, "round"), 1, FIRST_SNAPSHOT);
	json_decref(installed);
	e2e_wait_level(&e, 3);
	e2e_open_gate(&e);
	wait_for_round(&e, 2, LATER_SNAPSHOT + 3);
	assert_same_chain(&e, 0, 2, LATER_SNAPSHOT + 3);
	int snapshots = 0;
	long from = 0;
	for (json_t *j; (j = e2e_find_event(e.workers[2].log, "fetch", NULL, 0, &from)); json_decref(j))
		snapshots += strcmp(e2e_text(j, "what"), "snapshot") == 0;
	assert_int_equal(snapshots, 1);
	assert_null(e2e_find_event(e.workers[2].log, "starving", NULL, 0, NULL));
}

/* The state and all entries that this run ever makes are 2.6 MB; 1.1 GB left one donor in 8 s
 * before there were budgets. Whoever joins honestly is not held up. */
static void who_fetches_for_ever_is_given_two_states(void **state) {
	enum { PARAMETERS = 430000, STATE_BYTES = (8 + 4) * PARAMETERS, ROUNDS = 12 };
	static struct e2e e;
	*state = &e;
	e2e_open(&e, snapshots_all_the_time, 4);
	e2e_gate_at(&e, ROUNDS);
	e2e_start_gated_workers(&e, 2);
	wait_for_round(&e, 0, ROUNDS);
	e2e_start_worker(&e, 2, "rivulet-worker-greedy", NULL);
	json_t *told = e2e_wait_event(&e.workers[0], "donation_limit", NULL, 0, NULL);
	assert_int_equal(e2e_int(told, "member"), 2);
	assert_in_range(e2e_int(told, "bytes_donated"), STATE_BYTES / 2, 2 * STATE_BYTES);
	json_decref(told);
	e2e_start_worker(&e, 3, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[3], "installed", NULL, 0, NULL));
	e2e_open_gate(&e);
	wait_for_round(&e, 3, ROUNDS + 3);
	e2e_assert_same_chain(&e, (const int[]){0, 3}, 2, ROUNDS + 3);
}

static void a_snapshot_takes_longer_than_the_next_one(void **state) {
	check_long_snapshot(state, snapshots_all_the_time);
}

/* With fragments log entries are so small that they are tried first; but the first ones nobody
 * keeps. */
static void a_snapshot_takes_longer_than_the_next_one_and_no_log_leads_to_it(void **state) {
	check_long_snapshot(state, snapshots_and_fragments);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(from_a_donor_that_cannot_be_dialed, e2e_teardown),
		cmocka_unit_test_teardown(the_same_identity_is_welcome_at_once, e2e_teardown),
		cmocka_unit_test_teardown(who_fetches_for_ever_is_given_two_states, e2e_teardown),
		cmocka_unit_test_teardown(a_snapshot_takes_longer_than_the_next_one, e2e_teardown),
		cmocka_unit_test_teardown(a_snapshot_takes_longer_than_the_next_one_and_no_log_leads_to_it, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
