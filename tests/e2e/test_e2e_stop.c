/* test_e2e_stop.c: everybody stops and starts again; the coordinator is killed: the run ends in the
 * same bits as one that nothing happened to, and no process is left. */
#include "ends.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* All four in every round, however slow the machine: so the lab can say what the end must be. */
static const char patient_run[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
	"min-workers = 4\nsteps-per-round = 40\nrounds = 12\nsnapshot-every = 2\n" E2E_PATIENT;

static void assert_ends_as_in_the_lab(struct e2e *e) {
	char chain[65], full[65];
	e2e_assert_labs_end(e, 4, chain, full);
}

static void wait_for_round(struct e2e *e, int64_t round) {
	for (int i = 0; i < 4; i++)
		json_decref(e2e_wait_event(&e->workers[i], "round", "round", round, NULL));
}

static void stop_all_and_resume_all_is_straight_through(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, patient_run, 4);
	e2e_gate_at(&e, 6);
	e2e_start_gated_workers(&e, 4);
	wait_for_round(&e, 3);
	for (int i = 0; i < 4; i++)
		process_signal(&e.workers[i], i % 2 ? SIGTERM : SIGINT);
	e2e_gate_at(&e, 9); /* who waits there comes to the end of its step */
	for (int i = 0; i < 4; i++)
		process_assert_exit(&e.workers[i], 0);
	process_signal(&e.coordinator, SIGTERM);
	process_assert_exit(&e.coordinator, 0);
	e2e_start_coordinator(&e);
	e2e_start_workers(&e, 4);
	assert_ends_as_in_the_lab(&e);
}

static void all_killed_at_once_lose_no_round(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, patient_run, 4);
	e2e_gate_at(&e, 6);
	e2e_start_gated_workers(&e, 4);
	wait_for_round(&e, 3);
	process_signal(&e.coordinator, SIGKILL);
	for (int i = 0; i < 4; i++)
		process_signal(&e.workers[i], SIGKILL);
	for (int i = 0; i < 4; i++)
		process_assert_exit(&e.workers[i], 128 + SIGKILL);
	process_assert_exit(&e.coordinator, 128 + SIGKILL);
	e2e_start_coordinator(&e);
	e2e_start_workers(&e, 4);
	char chain[65], full[65];
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, 3}, 4, chain, full);
	/* Nobody went back before what had been committed. */
	for (int i = 0; i < 4; i++) {
		long from = 0;
		json_t *started = e2e_wait_event(&e.workers[i], "started", "round", 2, &from);
		json_decref(started);
	}
}

static void the_coordinator_is_killed_and_nothing_is_lost(void **state) {
	static struct e2e e;
	long from = 0;
	*state = &e;
	e2e_open(&e, patient_run, 4);
	e2e_gate_at(&e, 4);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, 3, E2E_GATED, NULL);
	for (int64_t round = 2; round <= 6; round += 2) {
		wait_for_round(&e, round);
		process_signal(&e.coordinator, SIGKILL);
		process_assert_exit(&e.coordinator, 128 + SIGKILL);
		json_decref(e2e_wait_event(&e.workers[0], "coordinator_away", NULL, 0, &from));
		e2e_gate_at(&e, round + 4);
		e2e_start_coordinator(&e);
		json_decref(e2e_wait_event(&e.workers[0], "coordinator_back", NULL, 0, &from));
	}
	e2e_open_gate(&e);
	assert_ends_as_in_the_lab(&e);
	assert_null(e2e_find_event(e.workers[0].log, "document", NULL, 0, NULL));
}

static long file_bytes(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return (long)st.st_size;
}

/* Killed between the weights and the last line of its metrics: the next start writes that line, and
 * only one. */
static void the_end_is_written_once_whenever_it_was_killed(void **state) {
	static struct e2e e;
	char chain[65], full[65], dir[E2E_PATH], metrics[E2E_PATH + 32];
	*state = &e;
	e2e_open(&e,
			 "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 1\nmin-workers = 1\n"
			 "steps-per-round = 2\nrounds = 2\ngrace-ms = 600000\nsilence-ms = 60000\n",
			 1);
	e2e_start_worker(&e, 0, NULL, NULL);
	e2e_assert_same_end(&e, (const int[]){0}, 1, chain, full);
	assert_null(e2e_find_event(e.workers[0].log, "alone", NULL, 0, NULL));
	e2e_worker_dir(&e, 0, dir);
	snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", dir);
	long whole = file_bytes(metrics);
	assert_int_equal(truncate(metrics, whole - 10), 0);
	for (int i = 0; i < 2; i++) {
		e2e_start_worker(&e, 0, NULL, NULL);
		process_assert_exit(&e.workers[0], 0);
		json_t *end = e2e_metrics(dir, "end");
		assert_string_equal(e2e_text(end, "state"), full);
		json_decref(end);
		if (i == 0)
			whole = file_bytes(metrics);
	}
	assert_int_equal(file_bytes(metrics), whole);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(stop_all_and_resume_all_is_straight_through, e2e_teardown),
		cmocka_unit_test_teardown(all_killed_at_once_lose_no_round, e2e_teardown),
		cmocka_unit_test_teardown(the_end_is_written_once_whenever_it_was_killed, e2e_teardown),
		cmocka_unit_test_teardown(the_coordinator_is_killed_and_nothing_is_lost, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
