/* test_e2e_failure.c: workers that die or freeze, in the middle of an all-reduce and elsewhere; the
 * others go on, and whoever comes back or comes new catches up from peers. How long detection and
 * commit took is printed, not asserted. */
#include "e2e.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Endless: the tests stop it. About 120 chunks. */
static const char endless[] = "n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							  "min-workers = 3\nsteps-per-round = 3\nrounds = 100000\nsnapshot-every = 4\n" E2E_STEADY;

/* Where the lost worker stops in its third all-reduce: not yet half of what a participant sends. */
#define IN_THE_MIDDLE "RIVULET_FAILPOINT=reduce.scatter-mid@3="

static void wait_until_it_stops(struct e2e *e, const char *what) {
	json_t *stopped = e2e_wait_event(&e->workers[3], "failpoint", NULL, 0, NULL);
	double lost_s = e2e_time(stopped);
	json_decref(stopped);
	e2e_assert_committed_by_survivors(e, e2e_last_attempt(e, 3), lost_s, what);
}

static void killed_in_the_middle_and_back_again(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 5);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, 3, "rivulet-worker-failpoint", IN_THE_MIDDLE "kill");
	wait_until_it_stops(&e, "kill -9 in the middle of an all-reduce");
	process_assert_exit(&e.workers[3], 128 + SIGKILL);

	/* It comes back with what it had, and a fifth one with nothing. */
	e2e_wait_for_round(&e, (const int[]){0, 1, 2}, 3, 12);
	long from = e2e_lines_so_far(&e, 3);
	e2e_start_worker(&e, 3, NULL, NULL);
	e2e_start_worker(&e, 4, NULL, NULL);
	e2e_assert_takes_part_again(&e, 3, from);
	e2e_assert_takes_part_again(&e, 4, 0);
	e2e_assert_no_state_was_wrong(&e, 5);
}

/* Those who are left are too few: they say so, and go on when it is back. */
static void killed_below_min_workers(void **state) {
	static struct e2e e;
	long from = 0;
	*state = &e;
	e2e_open(&e, endless, 3);
	e2e_start_workers(&e, 2);
	e2e_start_worker(&e, 2, "rivulet-worker-failpoint", IN_THE_MIDDLE "kill");
	json_decref(e2e_wait_event(&e.workers[0], "suspects", NULL, 0, &from));
	json_decref(e2e_wait_event(&e.workers[0], "waiting", "missing", 1, &from));
	process_assert_exit(&e.workers[2], 128 + SIGKILL);
	e2e_start_worker(&e, 2, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "enough_workers", NULL, 0, &from));
	e2e_wait_for_round(&e, (const int[]){0, 1, 2}, 3, 6);
	e2e_assert_same_chain(&e, (const int[]){0, 1, 2}, 3, 6);
}

/* All would commit it, and nobody could apply it: its owner is refused, and the others go on
 * without it. */
static void a_mean_that_nobody_can_decode(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 4);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, 3, "rivulet-worker-spoiler", NULL);
	long from = 0;
	json_t *attempt = e2e_wait_event(&e.workers[0], "attempt", "participants", 4, &from);
	int64_t round = e2e_int(attempt, "round");
	json_decref(attempt);
	e2e_wait_for_round(&e, (const int[]){0, 1, 2}, 3, round + 2);
	e2e_assert_same_chain(&e, (const int[]){0, 1, 2}, 3, round + 2);
	bool refused = false;
	for (from = 0; !refused;) {
		json_t *down = e2e_wait_event(&e.workers[0], "link_down", "member", 3, &from);
		refused = strstr(e2e_text(down, "text"), "cannot be decoded") != NULL;
		json_decref(down);
	}
	assert_null(e2e_find_event(e.workers[0].log, "apply_failed", NULL, 0, NULL));
}

static void frozen_in_the_middle(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 4);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, 3, "rivulet-worker-failpoint", IN_THE_MIDDLE "stop");
	wait_until_it_stops(&e, "SIGSTOP in the middle of an all-reduce");
	e2e_assert_no_state_was_wrong(&e, 3);
}

static void frozen_for_some_rounds_and_thawed(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 4);
	e2e_start_workers(&e, 4);
	e2e_wait_for_round(&e, (const int[]){0, 1, 2, 3}, 4, 2);
	process_freeze(&e.workers[3]);
	long from = e2e_lines_so_far(&e, 0);
	for (int alone = 0; alone < 2;) { /* some rounds without it */
		json_t *next = e2e_wait_event(&e.workers[0], "round", NULL, 0, &from);
		alone += e2e_int(next, "participants") < 4;
		json_decref(next);
	}
	from = e2e_lines_so_far(&e, 3);
	process_signal(&e.workers[3], SIGCONT);
	e2e_assert_takes_part_again(&e, 3, from);
	e2e_assert_no_state_was_wrong(&e, 4);
}

/* It cannot keep a round's log: so it does not vote, says so, and the others go on; it still
 * follows and trains. */
static int count_events(const struct process *p, const char *name) {
	int n = 0;
	long from = 0;
	for (json_t *j; (j = e2e_find_event(p->log, name, NULL, 0, &from)); n++)
		json_decref(j);
	return n;
}

/* What the operator sees of a member's disk; waits until it is a JSON null, or is not. */
static void wait_for_storage_status(struct e2e *e, size_t member, bool fails) {
	for (int tries = 0; tries < 5 * PROCESS_WAIT_S; tries++) {
		json_t *o = e2e_status(e);
		json_t *m = json_array_get(json_object_get(o, "members"), member), *storage = json_object_get(m, "storage");
		assert_non_null(storage);
		bool failing = json_is_object(storage);
		json_decref(o);
		if (failing == fails)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 200 * 1000000}, NULL);
	}
	fail_msg("the status never says so");
}

/* It goes on from memory, says so once for each thing that it cannot store, and again when it can.
 * The operator sees it, and that it is over. */
static void a_worker_whose_disk_is_full(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 4);
	e2e_gate_at(&e, 2);
	e2e_start_gated_workers(&e, 3);
	e.file_limit = 30000; /* a log entry is longer; what it logs until it is lifted is not */
	e2e_start_worker(&e, 3, NULL, NULL);
	e2e_wait_level(&e, 4);
	e2e_gate_at(&e, 8);
	json_t *j = e2e_wait_event(&e.workers[3], "attempt", NULL, 0, NULL);
	int64_t round = e2e_int(j, "round");
	json_decref(j);
	json_decref(e2e_wait_event(&e.workers[3], "storage", NULL, 0, NULL));
	e2e_wait_for_round(&e, (const int[]){0, 1, 2, 3}, 4, round + 4);
	e2e_assert_same_chain(&e, (const int[]){0, 3}, 2, round + 4);
	assert_in_range(count_events(&e.workers[3], "storage"), 1, 3); /* its vote, what it fetches, its checkpoint */
	assert_int_equal(count_events(&e.workers[3], "storage_back"), 0);
	wait_for_storage_status(&e, 3, true);
	struct rlimit room;
	assert_int_equal(prlimit(e.workers[3].pid, RLIMIT_FSIZE, NULL, &room), 0);
	room.rlim_cur = room.rlim_max;
	assert_int_equal(prlimit(e.workers[3].pid, RLIMIT_FSIZE, &room, NULL), 0);
	e2e_open_gate(&e);
	long from = 0;
	json_decref(e2e_wait_event(&e.workers[3], "storage_back", NULL, 0, &from));
	json_decref(e2e_wait_event(&e.workers[3], "attempt", NULL, 0, &from));
	wait_for_storage_status(&e, 3, false);
}

/* Nobody is told that all is saved when it is not. */
static void stopped_while_its_disk_is_full(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 3);
	e2e_gate_at(&e, 4);
	e2e_start_gated_workers(&e, 2);
	e.file_limit = 30000;
	e2e_start_worker(&e, 2, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[2], "storage", NULL, 0, NULL));
	process_signal(&e.workers[2], SIGINT);
	process_assert_exit(&e.workers[2], 0);
	json_t *stopped = e2e_wait_event(&e.workers[2], "stopped", NULL, 0, NULL);
	assert_true(json_is_false(json_object_get(stopped, "saved")));
	json_decref(stopped);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(killed_in_the_middle_and_back_again, e2e_teardown),
		cmocka_unit_test_teardown(killed_below_min_workers, e2e_teardown),
		cmocka_unit_test_teardown(a_mean_that_nobody_can_decode, e2e_teardown),
		cmocka_unit_test_teardown(frozen_in_the_middle, e2e_teardown),
		cmocka_unit_test_teardown(frozen_for_some_rounds_and_thawed, e2e_teardown),
		cmocka_unit_test_teardown(a_worker_whose_disk_is_full, e2e_teardown),
		cmocka_unit_test_teardown(stopped_while_its_disk_is_full, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
