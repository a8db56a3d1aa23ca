/* A real run with deaths, a restart and a late worker, done again in one process from its traces:
 * the same bits. */
#include "ends.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char config[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							 "min-workers = 2\nsteps-per-round = 6\nrounds = 66\nsnapshot-every = 10\n" E2E_STEADY;
/* Rounds exchange a third of the parameters each. */
#define STREAMING                                                                                                      \
	"n-layer = 4\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"                                 \
	"min-workers = 2\nsteps-per-round = 4\nrounds = 66\nsnapshot-every = 10\nfragments = 3\n" E2E_STEADY
static const char streaming[] = STREAMING, mixing[] = STREAMING "mix = 0.5\n",
				  discarding[] = STREAMING "late = discard\n";

static const char overlapped[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
	"min-workers = 2\nsteps-per-round = 6\noverlap-steps = 3\nrounds = 66\nsnapshot-every = 10\n" E2E_STEADY;

static const char feedback[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							   "min-workers = 2\nsteps-per-round = 6\nrounds = 66\nsnapshot-every = 10\n"
							   "codec = topk64\nerror-feedback = 0.95\nouter = sgd\n" E2E_STEADY;

static const char by_time_config[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\nmin-workers = 3\n"
	"steps-per-round = 5000\nround-ms = 30\nrounds = 8\nweight-by-tokens = true\n" E2E_PATIENT;

static void remove_state(struct e2e *e, int worker) {
	char dir[E2E_PATH], command[2 * E2E_PATH + 64];
	e2e_worker_dir(e, worker, dir);
	snprintf(command, sizeof command, "rm -f '%s'/snapshot-*.rvs '%s'/log-*.rvl", dir, dir);
	assert_int_equal(system(command), 0);
}

static void kill_worker(struct e2e *e, int worker) {
	process_signal(&e->workers[worker], SIGKILL);
	process_assert_exit(&e->workers[worker], 128 + SIGKILL);
}

/* One is killed and comes back, with its files or without the shared state; one comes when rounds
 * have passed. All are in before the run goes on to its end. */
static void check_a_run_with(void **state, const char *run, bool loses_state, const char *const *later_args) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, run, 4);
	e2e_gate_at(&e, 30);
	e2e_start_gated_workers(&e, 3);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 20);
	kill_worker(&e, 2);
	e2e_gate_at(&e, 60);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 40);
	if (loses_state)
		remove_state(&e, 2);
	for (int i = 0; later_args && later_args[i]; i++)
		e.worker_args[i] = later_args[i];
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	e2e_start_worker(&e, 3, E2E_GATED, NULL);
	e2e_wait_level(&e, 4);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, 3}, 4, chain, full);
	e2e_assert_replayed(&e, 4, chain, full);
}

static void check_a_run(void **state, const char *run, bool loses_state) {
	check_a_run_with(state, run, loses_state, NULL);
}

static void what_happened_to_the_run_does_not_matter(void **state) {
	check_a_run(state, config, false);
}

static void a_worker_that_lost_the_shared_state(void **state) {
	check_a_run(state, config, true);
}

/* It had less memory when it came back: other bits from there on. */
static void a_worker_that_chose_other_savings(void **state) {
	check_a_run_with(state, config, false,
					 (const char *const[]){"--moments=int8", "--micro-batch=1", "--recompute=block", NULL});
}

static void a_run_with_steps_ahead(void **state) {
	check_a_run(state, overlapped, false);
}

/* The replica of a snapshot is on its way to a slow disk, and that of the next encoding behind it:
 * the one before both is left. */
static void two_copies_were_lost(void **state) {
	static struct e2e e;
	char chain[65], full[65], dir[E2E_PATH];
	struct process trace = {.pid = 0};
	*state = &e;
	e2e_open(&e, overlapped, 3);
	e2e_gate_at(&e, 14);
	e2e_start_worker(&e, 0, E2E_GATED, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=replica.begin@11=delay:600000");
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	e2e_worker_dir(&e, 1, dir);
	assert_in_range(snprintf(trace.log, sizeof trace.log, "%.230s/trace.jsonl", dir), 1, sizeof trace.log - 1);
	json_decref(e2e_wait_event(&trace, "encode", "round", 10, NULL));
	kill_worker(&e, 1);
	e2e_gate_at(&e, 40);
	e2e_start_worker(&e, 1, E2E_GATED, NULL);
	e2e_wait_level(&e, 3);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	e2e_assert_replayed(&e, 3, chain, full);
}

static void a_run_with_error_feedback(void **state) {
	check_a_run(state, feedback, false);
}

/* H by each worker's own speed, which no two runs have alike: the traces say what it was. */
static void steps_by_time_are_replayed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, by_time_config, 3);
	e2e_start_workers(&e, 3);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	for (int i = 0; i < 3; i++) {
		char dir[E2E_PATH];
		e2e_worker_dir(&e, i, dir);
		json_t *round = e2e_metrics(dir, "round"), *run = e2e_metrics(dir, "run");
		assert_true(e2e_int(round, "tokens") < 3 * e2e_int(round, "step") * e2e_int(run, "tokens_per_step") / 2);
		json_decref(round);
		json_decref(run);
	}
	e2e_assert_replayed(&e, 3, chain, full);
}

static void fragments_are_replayed(void **state) {
	check_a_run(state, streaming, false);
}

static void mixed_fragments_of_a_worker_that_lost_the_shared_state(void **state) {
	check_a_run(state, mixing, true);
}

static void fragments_of_late_workers_are_discarded(void **state) {
	check_a_run(state, discarding, false);
}

/* Its replica on disk is ahead of what it starts from, and is written anew: it evaluates again all
 * the same. */
static void the_first_participant_went_back_and_evaluates(void **state) {
	static struct e2e e;
	char chain[65], full[65], dir[E2E_PATH];
	*state = &e;
	e2e_open(&e, config, 3);
	e2e_gate_at(&e, 30);
	e2e_start_gated_workers(&e, 3);
	json_decref(e2e_wait_event(&e.workers[0], "round", "round", 20, NULL));
	kill_worker(&e, 0);
	remove_state(&e, 0);
	e2e_gate_at(&e, 60);
	e.worker_args[0] = "--eval-every";
	e.worker_args[1] = "5";
	e2e_start_worker(&e, 0, E2E_GATED, NULL);
	e2e_wait_level(&e, 3);
	e2e_open_gate(&e);
	json_decref(e2e_wait_event(&e.workers[0], "eval", "round", 21, NULL));
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	e2e_worker_dir(&e, 0, dir);
	json_t *end = e2e_metrics(dir, "end");
	assert_true(json_real_value(json_object_get(end, "loss")) > 0.1);
	json_decref(end);
	e2e_worker_dir(&e, 1, dir);
	end = e2e_metrics(dir, "end");
	assert_true(json_is_null(json_object_get(end, "loss")));
	json_decref(end);
}

/* Another text is another run: the first round whose bits differ is named. */
static void other_data_are_noticed(void **state) {
	static struct e2e e;
	char chain[65], full[65], other[E2E_PATH + 16], copy[2 * E2E_PATH + 80];
	*state = &e;
	e2e_open(&e, config, 2);
	e2e_start_workers(&e, 2);
	e2e_assert_same_end(&e, (const int[]){0, 1}, 2, chain, full);
	snprintf(other, sizeof other, "%s/other", e.dir);
	snprintf(copy, sizeof copy, "tr 'aeiou' 'eioua' < '%s' > '%s'", e.data, other);
	assert_int_equal(system(copy), 0);
	snprintf(e.data, sizeof e.data, "%s", other);
	e2e_replay(&e, 2, "wrong", 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(steps_by_time_are_replayed, e2e_teardown),
		cmocka_unit_test_teardown(what_happened_to_the_run_does_not_matter, e2e_teardown),
		cmocka_unit_test_teardown(a_worker_that_lost_the_shared_state, e2e_teardown),
		cmocka_unit_test_teardown(a_worker_that_chose_other_savings, e2e_teardown),
		cmocka_unit_test_teardown(a_run_with_steps_ahead, e2e_teardown),
		cmocka_unit_test_teardown(two_copies_were_lost, e2e_teardown),
		cmocka_unit_test_teardown(a_run_with_error_feedback, e2e_teardown),
		cmocka_unit_test_teardown(fragments_are_replayed, e2e_teardown),
		cmocka_unit_test_teardown(mixed_fragments_of_a_worker_that_lost_the_shared_state, e2e_teardown),
		cmocka_unit_test_teardown(fragments_of_late_workers_are_discarded, e2e_teardown),
		cmocka_unit_test_teardown(the_first_participant_went_back_and_evaluates, e2e_teardown),
		cmocka_unit_test_teardown(other_data_are_noticed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
