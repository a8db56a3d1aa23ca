/* test_e2e_overlap.c: real workers that train ahead while a round is averaged: the bits of the lab, also when one of them
 * is killed at every delicate moment of it and comes back; and it says how much of the exchange training went on in. */
#include "e2e.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 2 };

/* Nobody is to be left out, however slow the machine. */
#define PATIENT "grace-ms = 600000\nliveness-ms = 120000\npeer-timeout-ms = 60000\n"
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 5\nbase-every = 3\n" PATIENT
/* Each round a third of the vector, of which a worker keeps half: what is in theta_local matters for long. */
#define STREAMING "fragments = 3\nmix = 0.5\n"

static int teardown(void **state) {
	if (*state)
		e2e_close(*state);
	return 0;
}

static void assert_the_labs_end(struct e2e *e) {
	char chain[65], full[65];
	e2e_assert_labs_end(e, WORKERS, chain, full);
	e2e_assert_replayed(e, WORKERS, chain, full);
}

static void check_a_run(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e2e_start_workers(&e, WORKERS);
	assert_the_labs_end(&e);
	for (int i = 0; i < WORKERS; i++) {
		char dir[E2E_PATH];
		e2e_worker_dir(&e, i, dir);
		json_t *round = e2e_metrics(dir, "round");
		assert_in_range(e2e_int(round, "overlap_us"), 0, e2e_int(round, "reduce_us"));
		json_decref(round);
	}
}

static void steps_ahead_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN "rounds = 8\noverlap-steps = 2\n");
}

static void a_whole_round_ahead_ends_in_the_labs_bits(void **state) {
	check_a_run(state, RUN "rounds = 5\noverlap-steps = 5\nweight-by-tokens = true\n");
}

static void streamed_fragments_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN STREAMING "rounds = 10\noverlap-steps = 2\n");
}

static void fragments_a_whole_round_ahead_with_error_feedback_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN "rounds = 7\noverlap-steps = 5\nfragments = 2\ncodec = int4\nerror-feedback = 0.9\n");
}

/* Nobody has its contribution yet, or its replica is on the disk: nothing is lost but time. */
static void check_deaths(void **state, const char *config) {
	static const char *const deaths[] = {"log.begin@1",    "train.step@1",  "log.renamed@2", "train.step@2",
										 "vote.before@2",  "vote.after@1",  "commit.seen@1", "commit.seen@2",
										 "apply.before@2", "apply.after@1", "apply.after@3", "encode.before@2",
										 "encode.after@2"};
	static struct e2e e;
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e2e_die_often(&e, deaths, sizeof deaths / sizeof deaths[0]);
	assert_the_labs_end(&e);
}

static void killed_with_its_replica_on_disk_it_ends_in_the_labs_bits(void **state) {
	check_deaths(state, RUN "rounds = 30\noverlap-steps = 2\n");
}

static void killed_among_streamed_fragments_it_ends_in_the_labs_bits(void **state) {
	check_deaths(state, RUN STREAMING "rounds = 30\noverlap-steps = 2\n");
}

/* Here it may be that its contribution counts, and the replica that it was made from never came to the disk. */
static void killed_at_any_moment_it_ends_in_the_others_bits(void **state) {
	static const char *const deaths[] = {"train.step@6",  "train.step@7",     "replica.begin@1", "replica.renamed@2",
										 "base.begin@1",  "base.renamed@1",   "ready.after@2",   "reduce.start@2",
										 "reduce.done@1", "persist.before@2", "prune.after@1"};
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, RUN STREAMING "rounds = 40\noverlap-steps = 2\n", WORKERS);
	e2e_die_often(&e, deaths, sizeof deaths / sizeof deaths[0]);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
}

/* Told to stop in the middle of the steps ahead, and started again. */
static void stopped_and_started_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN STREAMING "rounds = 60\noverlap-steps = 4\n", WORKERS);
	e2e_start_workers(&e, WORKERS);
	for (int64_t round = 10; round <= 40; round += 10) {
		json_decref(e2e_wait_event(&e.workers[1], "round", "round", round, NULL));
		e2e_signal(&e.workers[0], SIGTERM);
		assert_int_equal(e2e_wait_exit(&e.workers[0]), 0);
		e2e_launch_worker(&e, 0);
	}
	assert_the_labs_end(&e);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(steps_ahead_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(a_whole_round_ahead_ends_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(streamed_fragments_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(fragments_a_whole_round_ahead_with_error_feedback_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(killed_among_streamed_fragments_it_ends_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(killed_with_its_replica_on_disk_it_ends_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(killed_at_any_moment_it_ends_in_the_others_bits, teardown),
		cmocka_unit_test_teardown(stopped_and_started_it_ends_in_the_labs_bits, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
