/* test_e2e_versions.c: programs of this release and of a later one (versions 1 and 2 of the control
 * plane) in one run, in both directions: it ends in the same bits for all. */
#include "ends.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>

static const char three_workers[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
	"min-workers = 3\nsteps-per-round = 2\nrounds = 8\nsnapshot-every = 3\n" E2E_PATIENT;
static const int everybody[] = {0, 1, 2};

/* What `status` says of a member's protocol, while the coordinator runs. */
static int64_t protocol_of(struct e2e *e, size_t member) {
	json_t *o = e2e_status(e);
	int64_t version = e2e_int(json_array_get(json_object_get(o, "members"), member), "protocol");
	json_decref(o);
	return version;
}

static void newer_coordinator(struct e2e *e) {
	process_signal(&e->coordinator, SIGTERM);
	process_assert_exit(&e->coordinator, 0);
	e->coordinator_program = "rivulet-coordinator-v2";
	e2e_start_coordinator(e);
}

static void each_speaks_the_highest_in_common(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, three_workers, 3);
	newer_coordinator(&e);
	e2e_start_worker(&e, 0, NULL, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-v2", NULL);
	e2e_start_worker(&e, 2, NULL, NULL);
	e2e_assert_same_end(&e, everybody, 3, chain, full);
	assert_int_equal(protocol_of(&e, 0), 1);
	assert_int_equal(protocol_of(&e, 1), 2);
	json_t *round = NULL;
	for (int i = 0; i < 3; i++) { /* all three in every round */
		char dir[E2E_PATH];
		e2e_worker_dir(&e, i, dir);
		round = e2e_metrics(dir, "round");
		assert_int_equal(e2e_int(round, "participants"), 3);
		json_decref(round);
	}
}

/* The coordinator is replaced by the later release in the middle of the run, and back. */
static void a_newer_coordinator_takes_over(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, three_workers, 3);
	newer_coordinator(&e);
	e2e_gate_at(&e, 3);
	e2e_start_worker(&e, 0, NULL, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-v2", NULL);
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "round", "round", 2, NULL));
	process_signal(&e.coordinator, SIGKILL);
	(void)process_wait(&e.coordinator);
	e.coordinator_program = NULL;
	e2e_start_coordinator(&e);
	e2e_gate_at(&e, 5);
	json_decref(e2e_wait_event(&e.workers[0], "round", "round", 4, NULL));
	process_signal(&e.coordinator, SIGKILL);
	(void)process_wait(&e.coordinator);
	e.coordinator_program = "rivulet-coordinator-v2";
	e2e_start_coordinator(&e);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, everybody, 3, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_speaks_the_highest_in_common, e2e_teardown),
		cmocka_unit_test_teardown(a_newer_coordinator_takes_over, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
