/* test_attack_poison.c: one of four workers is malicious (evil.h): what it does to the run
 * without a limit on contributions, and with the default one; and who is named. Real processes on
 * loopback, a run of ten short rounds. */
#include "tests/common/check.h"
#include "tests/e2e/ends.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 4, EVIL = 3 };

static const char run_config[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 4\ndata-shards = 4\n"
	"min-workers = 4\nsteps-per-round = 8\nrounds = 10\nwarmup-steps = 10\nlr = 0.003\n" E2E_PATIENT;

/* Plays a run to its end with `more` in its configuration; worker EVIL does what
 * RIVULET_EVIL=`evil` says (evil.h), or is honest (NULL). Returns the held-out loss that an honest
 * worker measures in the end. The coordinator still runs. */
static double play(struct e2e *e, const char *more, const char *evil) {
	char config[1024], env[128], dir[E2E_PATH];
	(void)snprintf(config, sizeof config, "%s%s", run_config, more);
	e2e_open(e, config, WORKERS);
	e->worker_args[0] = "--eval-every";
	e->worker_args[1] = "1";
	e2e_start_workers(e, WORKERS - 1);
	(void)snprintf(env, sizeof env, "RIVULET_EVIL=%s", evil ? evil : "");
	e2e_start_worker(e, EVIL, evil ? "rivulet-worker-evil" : NULL, evil ? env : NULL);
	for (int i = 0; i < WORKERS; i++)
		process_assert_exit(&e->workers[i], 0);
	e2e_worker_dir(e, 0, dir);
	json_t *last = e2e_metrics(dir, "eval");
	double loss = json_number_value(json_object_get(last, "loss"));
	assert_true(loss > 0);
	json_decref(last);
	return loss;
}

/* Played once, for all tests. */
static double honest_loss(void **state) {
	static struct e2e e;
	static double loss;
	if (loss == 0) {
		*state = &e;
		loss = play(&e, "", NULL);
		e2e_close(&e);
		*state = NULL;
		print_message("honest: held-out loss %.3f\n", loss);
	}
	return loss;
}

static void assert_named(struct e2e *e, const char *event) {
	json_t *o = e2e_wait_event(&e->coordinator, event, NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(o, "text"), "member 3:"));
	json_decref(o);
}

/* Without the limit the attack ruins the run, by more than `harm` nats; with it the run ends within
 * `bound`. */
static void check_attack(void **state, const char *evil, double harm, double bound) {
	static struct e2e without, with;
	const double honest = honest_loss(state);
	*state = &without;
	double loss = play(&without, "merge = mean\n", evil);
	print_message("%s without a limit: %.3f\n", evil, loss);
	assert_true(loss > honest + harm);
	e2e_close(&without);
	*state = &with;
	loss = play(&with, "", evil);
	print_message("%s with the limit: %.3f\n", evil, loss);
	assert_true(loss < honest + bound);
	assert_named(&with, "outlier_clipped");
}

static void a_flipped_contribution(void **state) {
	check_attack(state, "scale=-4", 1, 0.4);
	assert_named(*state, "outlier_cosine");
}

static void a_contribution_far_too_large(void **state) {
	check_attack(state, "scale=100", 1, 0.4);
}

/* A loss that no text has makes neither the run's loss nor an end of anything; its reporter is
 * named. */
static void a_loss_that_no_text_has(void **state) {
	static struct e2e e;
	const double honest = honest_loss(state);
	*state = &e;
	double loss = play(&e, "", "loss=90");
	assert_true(loss < honest + 0.4);
	assert_named(&e, "outlier_loss");
	json_t *o = e2e_status(&e);
	assert_true(json_number_value(json_object_get(o, "loss")) < 6); /* of bytes: 5.55 before anything is learned */
	assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(o, "members"), EVIL), "outlier")),
					 1);
	json_decref(o);
}

/* Zeros: the run goes on with the others', and the free rider is named. */
static void a_free_rider(void **state) {
	static struct e2e e;
	const double honest = honest_loss(state);
	*state = &e;
	assert_true(play(&e, "", "zero=1") < honest + 0.4);
	assert_named(&e, "outlier_cosine");
}

/* A limit that holds somebody back in every chunk: workers, the lab and a replay of the traces end
 * in the same bits. */
static void limited_contributions_are_the_same_everywhere(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_check_run(&e,
				  "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\nmin-workers = 3\n"
				  "steps-per-round = 3\nrounds = 4\nouter-clip = 1\n" E2E_PATIENT,
				  3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_flipped_contribution, e2e_teardown),
		cmocka_unit_test_teardown(a_contribution_far_too_large, e2e_teardown),
		cmocka_unit_test_teardown(a_loss_that_no_text_has, e2e_teardown),
		cmocka_unit_test_teardown(a_free_rider, e2e_teardown),
		cmocka_unit_test_teardown(limited_contributions_are_the_same_everywhere, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
