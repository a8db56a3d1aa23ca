/* test_e2e_overlap.c: real workers that train ahead while a round is averaged: the bits of the lab,
 * also when one of them is killed at delicate moments of it and comes back; and it says how much of
 * the exchange training went on in. More deaths: test_e2e_overlap_killed.c. */
#include "ends.h"
#include "interruptions.h"
#include "tests/common/check.h"

enum { WORKERS = 2 };

#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 5\nsnapshot-every = 3\n" E2E_PATIENT
/* Each round a third of the vector, of which a worker keeps half: what is in theta_local matters
 * for long. */
#define STREAMING "fragments = 3\nmix = 0.5\n"

static void check_a_run(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_check_run(&e, config, WORKERS);
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

static void killed_among_streamed_fragments_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN STREAMING "rounds = 30\noverlap-steps = 2\n", WORKERS);
	e2e_die_without_loss(&e);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

/* Told to stop in the middle of the steps ahead, and started again. */
static void stopped_and_started_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN STREAMING "rounds = 60\noverlap-steps = 4\n", WORKERS);
	e2e_stop_and_start(&e, 10, 4);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(steps_ahead_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(a_whole_round_ahead_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(streamed_fragments_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(fragments_a_whole_round_ahead_with_error_feedback_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(killed_among_streamed_fragments_it_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(stopped_and_started_it_ends_in_the_labs_bits, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
