/* test_e2e_cross.c: runs of which some workers, or all, are built for another processor
 * (./dev cross ARCHITECTURE --test, which names the directory of those programs in RIVULET_CROSS).
 * What travels and what all hold has the same bits on both; what a worker trains has those of its
 * processor. */
#include "ends.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An emulated worker is slow: everything waits for it. */
static const char small_run[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
								"min-workers = 2\nsteps-per-round = 3\nrounds = 4\nsnapshot-every = 2\n" E2E_PATIENT;

static const char *foreign_programs(void) {
	const char *dir = getenv("RIVULET_CROSS");
	if (!dir)
		skip();
	return dir;
}

static void foreign(const char *program, char out[E2E_PATH]) {
	assert_in_range(snprintf(out, E2E_PATH, "%s/%s", foreign_programs(), program), 1, E2E_PATH - 1);
}

/* Replays the run by a program, from the logs of both workers. Returns its exit status. */
static int replay(struct e2e *e, const char *name, const char *program) {
	char dirs[2][E2E_PATH];
	e2e_worker_dir(e, 0, dirs[0]);
	e2e_worker_dir(e, 1, dirs[1]);
	const char *const argv[] = {program, "replay", "--data", e->data, dirs[0], dirs[1], NULL};
	return e2e_run(e, name, argv, -1);
}

static void assert_log_has(const struct e2e *e, const char *name, const char *wanted) {
	char path[E2E_PATH];
	e2e_path(e, name, path);
	char *text = scratch_read(path, NULL);
	assert_non_null(text);
	if (!strstr(text, wanted))
		fail_msg("%s has no \"%s\": %s", name, wanted, text);
	free(text);
}

/* Worker 0 is foreign; worker 1 is `other`. */
static void run_to_the_end(struct e2e *e, const char *other) {
	static const int both[] = {0, 1};
	char worker[E2E_PATH], chain[65], state[65];
	foreign("rivulet-worker", worker);
	e2e_start_worker(e, 0, worker, NULL);
	e2e_start_worker(e, 1, other ? other : worker, NULL);
	e2e_assert_same_end(e, both, 2, chain, state);
}

/* The digest of the means is voted on in each round, and the state's full hash at the end. */
static void workers_of_two_processors_end_in_the_same_bits(void **state) {
	static struct e2e e;
	*state = foreign_programs() ? &e : NULL;
	e2e_open(&e, small_run, 2);
	run_to_the_end(&e, "rivulet-worker");
}

/* The coordinator goes on there with the store that was made here. */
static void a_run_of_the_other_processor_is_replayed_there_alone(void **state) {
	static struct e2e e;
	static char coordinator[E2E_PATH];
	char program[E2E_PATH];
	*state = foreign_programs() ? &e : NULL;
	e2e_open(&e, small_run, 2);
	process_kill(&e.coordinator);
	foreign("rivulet-coordinator", coordinator);
	e.coordinator_program = coordinator;
	e2e_start_coordinator(&e);
	run_to_the_end(&e, NULL);
	foreign("rivulet", program);
	if (replay(&e, "replay-there", program) != 0)
		assert_log_has(&e, "replay-there.log", "\"replayed\"");
	assert_int_not_equal(replay(&e, "replay-here", "rivulet"), 0);
	assert_log_has(&e, "replay-here.log", "another instruction set");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(workers_of_two_processors_end_in_the_same_bits, e2e_teardown),
		cmocka_unit_test_teardown(a_run_of_the_other_processor_is_replayed_there_alone, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
