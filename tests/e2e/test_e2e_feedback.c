/* test_e2e_feedback.c: real workers whose contributions lose something and make up for it later:
 * rounded, sparse, with error feedback, means encoded otherwise: the bits of the lab, also when a
 * worker is stopped and comes back, and on a replay of what they recorded. */
#include "ends.h"
#include "interruptions.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS = 2 };

#define SHAPE                                                                                                          \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 4\nsnapshot-every = 3\n"
#define RUN SHAPE E2E_PATIENT
/* A round that has failed twice stays closed for a quarter of silence-ms, then for longer: deaths
 * in all-reduces are tested with a short one. Both workers are needed: none is left out. */
#define MORTAL      SHAPE E2E_STEADY
#define FOUR_BITS   "codec = int4\nerror-feedback = 0.9\nouter = adam\n"
#define SPARSE      "codec = topk64\nerror-feedback = 0.95\nouter = sgd\n"
#define SIXTEEN     "codec = int16\nerror-feedback = 0.9\n"
#define WIDE_MEAN   "codec = int4\nmean-codec = int16\nerror-feedback = 0.9\nouter = sgd\n"
#define SPARSE_MEAN "codec = topk32\nmean-codec = topk128\nerror-feedback = 0.95\nouter = sgd\n"
/* Owners keep what encoding means lost; with equal shares no chunk moves, as in the lab. */
#define BOTH_SPARSE                                                                                                    \
	"codec = topk64\nmean-codec = topk64\nerror-feedback = 0.95\nmean-feedback = 1\nouter = sgd\nownership = equal\n"

static void check_a_run(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_check_run(&e, config, WORKERS);
}

static void four_bits_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN FOUR_BITS "rounds = 8\n");
}

static void the_largest_values_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN SPARSE "rounds = 8\n");
}

static void sparse_means_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN SPARSE_MEAN "rounds = 6\noverlap-steps = 2\n");
}

static void both_sparse_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN BOTH_SPARSE "rounds = 8\n");
}

static void both_sparse_in_fragments_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN BOTH_SPARSE "rounds = 9\nfragments = 3\noverlap-steps = 2\n");
}

static void sixteen_bits_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN SIXTEEN "rounds = 6\n");
}

static void means_in_sixteen_bits_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN WIDE_MEAN "rounds = 6\n");
}

/* Each fragment's residual waits for its own next round. */
static void fragments_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN FOUR_BITS "rounds = 12\nfragments = 3\noverlap-steps = 2\nmix = 0.1\n");
}

/* Told to stop wherever it is, and started again: its residual comes back with it. */
static void stop_and_start(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e2e_stop_and_start(&e, 6, 4);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

static void stopped_and_started_it_ends_in_the_labs_bits(void **state) {
	stop_and_start(state, RUN FOUR_BITS "rounds = 36\n");
}

static void stopped_with_steps_ahead_it_ends_in_the_labs_bits(void **state) {
	stop_and_start(state, RUN SPARSE "rounds = 36\noverlap-steps = 3\n");
}

/* What it has said and what not is known. */
static void killed_with_its_replica_on_disk_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN FOUR_BITS "rounds = 30\n", WORKERS);
	e2e_die_without_loss(&e);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

/* What it had not said may be lost with it. */
/* Returns how many processes of worker 0, but the first, began their first attempt with a
 * residual. */
static int processes_with_a_residual(const struct e2e *e) {
	char dir[E2E_PATH], path[E2E_PATH + 16], line[1 << 16];
	int starts = 0, with = 0;
	bool fresh = false;
	e2e_worker_dir(e, 0, dir);
	snprintf(path, sizeof path, "%s/trace.jsonl", dir);
	FILE *trace = fopen(path, "r");
	assert_non_null(trace);
	while (fgets(line, sizeof line, trace)) {
		const bool start = strstr(line, "\"event\":\"start\""), owns = strstr(line, "\"event\":\"owns\"");
		starts += start;
		with += owns && fresh && starts > 1 && strstr(line, "\"residual\":true");
		fresh = start || (fresh && !owns);
	}
	fclose(trace);
	return with;
}

/* An owner that stops comes back with what its means have not said yet. (Not with the lab's bits:
 * if it stops in an all-reduce, its chunks move in the next attempt.) */
static void an_owner_comes_back_with_its_residual(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, RUN BOTH_SPARSE "rounds = 36\n", WORKERS);
	e2e_stop_and_start(&e, 6, 4);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
	e2e_assert_replayed(&e, WORKERS, chain, full);
	assert_true(processes_with_a_residual(&e) > 0);
}

/* Chunks of an owner that died move in the next attempt, which loses what it had not said of them:
 * not the lab's bits, and its trace says why. */
static void an_owner_killed_at_any_moment_is_replayed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, MORTAL BOTH_SPARSE "rounds = 100\n", WORKERS);
	e2e_die_anywhere(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
	e2e_assert_replayed(&e, WORKERS, chain, full);
}

static void killed_at_any_moment_it_is_replayed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, MORTAL SPARSE "rounds = 100\n", WORKERS);
	e2e_die_anywhere(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
	e2e_assert_replayed(&e, WORKERS, chain, full);
}

/* Waits for a line of the worker's trace, of `round` or a later one; the caller drops it. */
static json_t *wait_for_line(const struct e2e *e, int worker, const char *event, int64_t round, long *from) {
	struct process trace = {.pid = 0};
	char dir[E2E_PATH];
	e2e_worker_dir(e, worker, dir);
	assert_in_range(snprintf(trace.log, sizeof trace.log, "%.230s/trace.jsonl", dir), 1, sizeof trace.log - 1);
	return e2e_wait_event(&trace, event, "round", round, from);
}

/* The replica of an encoding never reaches the disk, and the others commit the round with that
 * contribution: the next process has an older replica, and no residual. */
static void killed_before_its_replica_is_written_it_is_replayed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	long from = 0;
	enum { N = WORKERS + 1, LOST = 7 };
	*state = &e;
	e2e_open(&e, MORTAL BOTH_SPARSE "rounds = 20\n", N);
	e2e_gate_at(&e, LOST + 4);
	e2e_start_worker(&e, 0, E2E_GATED, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=replica.begin@10=delay:600000");
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	json_decref(wait_for_line(&e, 1, "encode", LOST, &from));
	json_decref(wait_for_line(&e, 0, "vote", LOST, NULL));
	json_decref(wait_for_line(&e, 2, "vote", LOST, NULL));
	process_signal(&e.workers[1], SIGKILL);
	process_assert_exit(&e.workers[1], 128 + SIGKILL);
	json_decref(wait_for_line(&e, 0, "apply", LOST, NULL));
	e2e_start_worker(&e, 1, E2E_GATED, NULL);
	json_t *start = wait_for_line(&e, 1, "start", 0, &from);
	assert_true(e2e_int(start, "saved_round") < LOST || e2e_int(start, "saved_steps") == 0);
	json_decref(start);
	e2e_wait_level(&e, N);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, N, chain, full);
	e2e_assert_replayed(&e, N, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(four_bits_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(the_largest_values_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(sparse_means_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(both_sparse_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(both_sparse_in_fragments_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(sixteen_bits_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(means_in_sixteen_bits_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(fragments_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(stopped_and_started_it_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(stopped_with_steps_ahead_it_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(killed_with_its_replica_on_disk_it_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(an_owner_comes_back_with_its_residual, e2e_teardown),
		cmocka_unit_test_teardown(an_owner_killed_at_any_moment_is_replayed, e2e_teardown),
		cmocka_unit_test_teardown(killed_at_any_moment_it_is_replayed, e2e_teardown),
		cmocka_unit_test_teardown(killed_before_its_replica_is_written_it_is_replayed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
