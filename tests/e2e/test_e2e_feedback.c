/* test_e2e_feedback.c: real workers whose contributions lose something and make up for it later: rounded at random,
 * sparse, with error feedback, means encoded otherwise: the bits of the lab, also when a worker is stopped and comes
 * back, and on a replay of what they recorded. */
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
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 4\nbase-every = 3\ngrace-ms = 600000\nliveness-ms = 120000\npeer-timeout-ms = 60000\n"
#define TWO_BITS    "codec = int2\nerror-feedback = 0.9\nouter = adam\n"
#define SPARSE      "codec = topk64\nerror-feedback = 0.95\nouter = sgd\n"
#define SPARSE_MEAN "codec = topk32\nmean-codec = topk128\nerror-feedback = 0.95\nouter = sgd\n"

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
}

static void two_bits_rounded_at_random_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN TWO_BITS "rounds = 8\n");
}

static void the_largest_values_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN SPARSE "rounds = 8\n");
}

static void sparse_means_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN SPARSE_MEAN "rounds = 6\noverlap-steps = 2\n");
}

/* Each fragment's residual waits for its own next round. */
static void fragments_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN TWO_BITS "rounds = 12\nfragments = 3\noverlap-steps = 2\nmix = 0.5\n");
}

/* Told to stop wherever it is, and started again: its residual comes back with it. */
static void stop_and_start(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e2e_start_workers(&e, WORKERS);
	for (int64_t round = 6; round <= 24; round += 6) {
		json_decref(e2e_wait_event(&e.workers[1], "round", "round", round, NULL));
		e2e_signal(&e.workers[0], SIGTERM);
		assert_int_equal(e2e_wait_exit(&e.workers[0]), 0);
		e2e_launch_worker(&e, 0);
	}
	assert_the_labs_end(&e);
}

static void stopped_and_started_it_ends_in_the_labs_bits(void **state) {
	stop_and_start(state, RUN TWO_BITS "rounds = 36\n");
}

static void stopped_with_steps_ahead_it_ends_in_the_labs_bits(void **state) {
	stop_and_start(state, RUN SPARSE "rounds = 36\noverlap-steps = 3\n");
}

/* Nobody has its contribution yet, or the replica that it was made from is on the disk: what it has said and what not
 * is known. */
static void killed_with_its_replica_on_disk_it_ends_in_the_labs_bits(void **state) {
	static const char *const deaths[] = {"log.begin@1",    "train.step@1",  "log.renamed@2", "train.step@2",
										 "vote.before@2",  "vote.after@1",  "commit.seen@1", "commit.seen@2",
										 "apply.before@2", "apply.after@1", "apply.after@3", "encode.before@2",
										 "encode.after@2"};
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN TWO_BITS "rounds = 30\n", WORKERS);
	e2e_die_often(&e, deaths, sizeof deaths / sizeof deaths[0]);
	assert_the_labs_end(&e);
}

/* Here it may be that its contribution counts, and the replica never came to the disk: what it had not said is lost
 * with it. */
static void killed_at_any_moment_it_ends_in_the_others_bits(void **state) {
	static const char *const deaths[] = {"train.step@6",   "train.step@7",   "replica.begin@1",
										 "base.begin@1",   "base.renamed@1", "ready.after@2",
										 "reduce.start@2", "reduce.done@1",  "persist.before@2"};
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, RUN SPARSE "rounds = 40\n", WORKERS);
	e2e_die_often(&e, deaths, sizeof deaths / sizeof deaths[0]);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_bits_rounded_at_random_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(the_largest_values_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(sparse_means_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(fragments_end_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(stopped_and_started_it_ends_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(stopped_with_steps_ahead_it_ends_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(killed_with_its_replica_on_disk_it_ends_in_the_labs_bits, teardown),
		cmocka_unit_test_teardown(killed_at_any_moment_it_ends_in_the_others_bits, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
