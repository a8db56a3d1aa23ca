/* test_attack_audit.c: one of four workers lies as an owner (evil.h): it sends everybody the
 * same wrong means, so that all votes agree. Audits catch, name and ban it, the run goes back to
 * before its lie and ends as the run without it: in its very bits if it lied from the first round
 * on. Real processes on loopback. */
#include "tests/common/check.h"
#include "tests/e2e/ends.h"
#include "tests/e2e/rounds.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 4, EVIL = 3, STATUS_BANNED = 4 };

#define AUDITED    "audit-chunks = 8\naudit-rollback = true\n"
#define FEW_AUDITS "audit-chunks = 1\naudit-rollback = true\n"

static const char run_config[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 4\ndata-shards = 4\n"
	"min-workers = 3\nsteps-per-round = 8\nrounds = 12\nwarmup-steps = 10\nlr = 0.003\n" E2E_STEADY;

static double end_loss(struct e2e *e) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, 0, dir);
	json_t *last = e2e_metrics(dir, "eval");
	const double loss = json_number_value(json_object_get(last, "loss"));
	json_decref(last);
	assert_true(loss > 0);
	return loss;
}

/* Starts so many honest workers, then EVIL if `evil` is not NULL: all of them are in `round`,
 * however slow the machine. */
static void start(struct e2e *e, const char *more, int honest, int round, const char *evil) {
	static const int first[] = {0, 1, 2};
	char config[1024], env[128];
	(void)snprintf(config, sizeof config, "%s%s", run_config, more);
	e2e_open(e, config, WORKERS);
	e->worker_args[0] = "--eval-every";
	e->worker_args[1] = "1";
	e2e_gate_at(e, round);
	e2e_start_gated_workers(e, honest);
	if (round > 0)
		e2e_wait_for_round(e, first, 3, round);
	if (evil != NULL) {
		(void)snprintf(env, sizeof env, "RIVULET_EVIL=%s", evil);
		e2e_start_worker(e, EVIL, "rivulet-worker-evil", env);
	}
	e2e_wait_level(e, honest + (evil != NULL));
	e2e_open_gate(e);
}

/* The honest workers play to the run's end; returns the held-out loss that one of them measures
 * then. The coordinator still runs. */
static double play(struct e2e *e) {
	for (int i = 0; i < EVIL; i++) {
		long from = 0;
		process_assert_exit(&e->workers[i], 0);
		assert_null(e2e_find_event(e->workers[i].log, "audit_draw", NULL, 0, &from)); /* in no term */
	}
	return end_loss(e);
}

/* Played once: the three honest workers alone. */
static double honest_loss(void **state) {
	static struct e2e e;
	static double loss;
	if (loss == 0) {
		*state = &e;
		start(&e, "", EVIL, 0, NULL);
		loss = play(&e);
		e2e_close(&e);
		*state = NULL;
		print_message("honest: held-out loss %.3f\n", loss);
	}
	return loss;
}

/* Waits until the liar is named; returns whether that was for the round in which it lied first.
 * Logs count rounds from 1, `first` is an index. */
static bool is_named_at_once(struct e2e *e, int first) {
	int round = -1;
	json_t *lied = e2e_wait_event(&e->coordinator, "audit_lied", NULL, 0, NULL);
	print_message("%s\n", e2e_text(lied, "text"));
	assert_int_equal(sscanf(e2e_text(lied, "text"), "round %d: member 3 sent all others", &round), 1);
	json_decref(lied);
	return round == first + 1;
}

/* Starts runs with audits until the liar is named at once. Eight chunks of 68 are drawn and it owns
 * a quarter of them: one run in ten misses its first lie, eight in a row one in 100 million. */
static void start_caught(struct e2e *e, const char *audits, int first, const char *evil) {
	enum { TRIES = 8 };
	for (int i = 0; i < TRIES; i++) {
		start(e, audits, EVIL, first, evil);
		if (is_named_at_once(e, first))
			return;
		e2e_close(e);
	}
	fail_msg("%d runs in a row missed the first lie", TRIES);
}

/* Returns the loss at the end of a run that goes back to before the first lie, in round `first`. */
static double loss_after_audits(void **state, const char *audits, int first, const char *evil) {
	static struct e2e e;
	*state = &e;
	start_caught(&e, audits, first, evil);
	const double loss = play(&e);
	print_message("%s with audits: %.3f\n", evil, loss);
	json_decref(e2e_wait_event(&e.coordinator, "audit_rollback", NULL, 0, NULL));
	process_assert_exit(&e.workers[EVIL], STATUS_BANNED);
	return loss;
}

/* With audits the run ends as if the liar had stayed at home. Without them (`harm` above 0) nobody
 * notices, and the loss is so much higher. */
static void check_lie(void **state, const char *evil, double harm) {
	enum { FIRST = 2 };
	static struct e2e without;
	const double honest = honest_loss(state);
	if (harm > 0) {
		*state = &without;
		start(&without, "", EVIL, FIRST, evil);
		const double spoiled = play(&without);
		print_message("%s without audits: %.3f\n", evil, spoiled);
		assert_true(spoiled > honest + harm);
		e2e_close(&without);
	}
	assert_true(loss_after_audits(state, AUDITED, FIRST, evil) < 1.03 * honest);
}

static void negated_means(void **state) {
	check_lie(state, "mean=-1", 0.2);
}

static void means_far_too_large(void **state) {
	check_lie(state, "mean=64", 0);
}

/* Back at the run's begin the workers have neither moments nor a data position of the rounds that
 * were taken back: the run has the bits of the one without the liar. */
static void means_far_too_large_from_the_first_round_on(void **state) {
	const double honest = honest_loss(state);
	assert_true(loss_after_audits(state, AUDITED, 0, "mean=64") == honest);
}

/* One chunk of 68 a round, and one is drawn: what catches it is that voters say where to look. */
static void one_mean_a_round_that_stands_out(void **state) {
	enum { FIRST = 2 };
	const double honest = honest_loss(state);
	assert_true(loss_after_audits(state, FEW_AUDITS, FIRST, "mean=64,every=17") < 1.03 * honest);
	assert_true(loss_after_audits(state, FEW_AUDITS, FIRST, "mean=-1,every=17") < 1.03 * honest);
}

/* Honest workers audit each other, and nobody is named. */
static void honest_owners_are_found_right(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	static const int all[] = {0, 1, 2, 3};
	for (int audited = 0; audited < 2; audited++) {
		*state = &e;
		start(&e, audited ? AUDITED : "", WORKERS, 0, NULL);
		e2e_assert_same_end(&e, all, WORKERS, chain, full);
		json_t *status = e2e_status(&e);
		json_t *audits = json_object_get(status, "audits");
		if (audited) {
			assert_true(json_integer_value(json_object_get(audits, "right")) >= 40);
			assert_int_equal(json_integer_value(json_object_get(audits, "wrong")), 0);
		} else {
			assert_true(json_is_null(audits));
		}
		json_decref(status);
		e2e_close(&e);
		*state = NULL;
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(negated_means, e2e_teardown),
		cmocka_unit_test_teardown(means_far_too_large, e2e_teardown),
		cmocka_unit_test_teardown(means_far_too_large_from_the_first_round_on, e2e_teardown),
		cmocka_unit_test_teardown(one_mean_a_round_that_stands_out, e2e_teardown),
		cmocka_unit_test_teardown(honest_owners_are_found_right, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
