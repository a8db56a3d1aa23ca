/* test_e2e_streaming.c: rounds that exchange fragments in turn (Streaming DiLoCo), among real
 * processes: the same bits as in one, straight through or stopped in between; and the bytes of a
 * fragment only. */
#include "ends.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>

enum { WORKERS = 3 };

static const char small_run[] = "n-layer = 3\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
								"min-workers = 3\nsteps-per-round = 4\nrounds = 9\nsnapshot-every = 2\n" E2E_PATIENT;
static const char long_run[] = "n-layer = 3\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
							   "min-workers = 3\nsteps-per-round = 30\nrounds = 12\nsnapshot-every = 5\n"
							   "fragments = 4\nmix = 0.25\nmerge = centered\nouter-clip = 1\n" E2E_PATIENT;
/* About a million parameters. */
static const char wide_run[] =
	"n-layer = 4\nn-head = 4\nn-embd = 144\ncontext = 16\nbatch = 1\ndata-shards = 3\n"
	"min-workers = 3\nsteps-per-round = 1\nrounds = 6\nownership = equal\nfragments = 3\n" E2E_PATIENT;

static const int everybody[WORKERS] = {0, 1, 2};

static void verify_files(struct e2e *e) {
	char dir[E2E_PATH], model[E2E_PATH + 16];
	e2e_worker_dir(e, 1, dir);
	snprintf(model, sizeof model, "%s/model", e->dir);
	e2e_run(e, "verify", (const char *const[]){"rivulet", "checkpoint", "verify", dir, NULL}, 0);
	e2e_run(e, "list", (const char *const[]){"rivulet", "checkpoint", "list", dir, NULL}, 0);
	e2e_run(e, "export", (const char *const[]){"rivulet", "export", dir, "--round", "7", "--out", model, NULL}, 0);
}

static void the_same_bits(void **state, int fragments, const char *mix, const char *more) {
	static struct e2e e;
	char config[512];
	*state = &e;
	snprintf(config, sizeof config, "%sfragments = %d\nmix = %s\n%s", small_run, fragments, mix, more);
	e2e_check_run(&e, config, WORKERS);
	verify_files(&e);
}

static void two_fragments_end_as_in_the_lab(void **state) {
	the_same_bits(state, 2, "0", "");
}

static void three_fragments_mixed_end_as_in_the_lab(void **state) {
	the_same_bits(state, 3, "0.5", "");
}

static void four_fragments_end_as_in_the_lab(void **state) {
	the_same_bits(state, 4, "0", "");
}

static void one_fragment_mixed_ends_as_in_the_lab(void **state) {
	the_same_bits(state, 1, "0.5", "");
}

static void fragments_with_error_feedback_end_as_in_the_lab(void **state) {
	the_same_bits(state, 3, "0", "codec = int4\nerror-feedback = 0.9\n");
}

/* Each value's mean is of one worker: the other two are its extremes. */
static void trimmed_means_end_as_in_the_lab(void **state) {
	the_same_bits(state, 2, "0", "merge = trimmed\ntrim-share = 0.34\nweight-by-tokens = yes\ncodec = int16\n");
}

/* Of each fragment the last mean is another round's. */
static void centered_means_end_as_in_the_lab(void **state) {
	the_same_bits(state, 2, "0", "merge = centered\nouter-clip = 1\nweight-by-tokens = yes\n");
}

/* Every owner compares all pairs. */
static void agreed_means_end_as_in_the_lab(void **state) {
	the_same_bits(state, 2, "0", "merge = agreed\nouter-clip = 1\nweight-by-tokens = yes\n");
}

/* theta_local is not theta where a round begins, and the last means are no function of theta: what
 * a stopped worker takes up again is its own. */
static void stopped_and_started_again_is_straight_through(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, long_run, WORKERS);
	e2e_start_workers(&e, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		json_decref(e2e_wait_event(&e.workers[i], "round", "round", 3 + i, NULL));
	for (int i = 0; i < WORKERS; i++)
		process_signal(&e.workers[i], SIGTERM);
	for (int i = 0; i < WORKERS; i++)
		process_assert_exit(&e.workers[i], 0);
	e2e_start_workers(&e, WORKERS);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

/* Six rounds of three fragments send what two rounds of all would. */
static void bytes_are_those_of_the_fragments(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, wide_run, WORKERS);
	e2e_start_workers(&e, WORKERS);
	e2e_assert_same_end(&e, everybody, WORKERS, chain, full);
	for (int i = 0; i < WORKERS; i++) {
		char dir[E2E_PATH];
		e2e_worker_dir(&e, i, dir);
		json_t *end = e2e_metrics(dir, "end"), *run = e2e_metrics(dir, "run");
		double sent = (double)e2e_int(end, "bytes_sent"), formula = (double)e2e_int(end, "formula_bytes");
		double twice_all = 2 * 2.0 * (WORKERS - 1) / WORKERS * (double)e2e_int(run, "n_params");
		assert_true(formula > twice_all && formula < 1.02 * twice_all); /* int8, and a scale for 256 of them */
		assert_true(sent >= formula && sent < 1.06 * formula);
		json_decref(end);
		json_decref(run);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_fragments_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(three_fragments_mixed_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(four_fragments_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(one_fragment_mixed_ends_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(fragments_with_error_feedback_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(trimmed_means_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(agreed_means_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(centered_means_end_as_in_the_lab, e2e_teardown),
		cmocka_unit_test_teardown(stopped_and_started_again_is_straight_through, e2e_teardown),
		cmocka_unit_test_teardown(bytes_are_those_of_the_fragments, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
