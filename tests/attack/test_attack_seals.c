/* test_attack_seals.c: one of four workers signs two lists of means, or two contributions, signs
 * falsely, or sends another contribution than it has committed to (evil_seals.c, evil_reports.c).
 * It is named in the round in which it lies first, or in the next, no honest member is, and the
 * others commit every round. Real processes on loopback. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/e2e/ends.h"
#include "tests/e2e/rounds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HONEST = 3, EVIL = 3, WORKERS = HONEST + 1, STATUS_BANNED = 4, FIRST_LIE = 1 };

static const char run_config[] =
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 4\ndata-shards = 4\n"
	"min-workers = 3\nsteps-per-round = 2\nrounds = 4\nwarmup-steps = 2\nlr = 0.003\n" E2E_PATIENT;

/* Three honest workers and the liar, all in the first roster, however slow the machine. */
static void start(struct e2e *e, void **state, const char *lie) {
	char env[128];
	*state = e;
	(void)snprintf(env, sizeof env, "RIVULET_EVIL=%s=1,lies_from=%d", lie, FIRST_LIE);
	e2e_open(e, run_config, WORKERS);
	e2e_gate_at(e, 0);
	e2e_start_gated_workers(e, HONEST);
	e2e_start_worker(e, EVIL, "rivulet-worker-evil", env);
	e2e_wait_level(e, WORKERS);
	e2e_open_gate(e);
}

/* The coordinator blames the liar soon after its first lie, and nobody else at any time. */
static void check_named(struct e2e *e, const char *event) {
	static const char *const blaming[] = {"equivocated", "suspected", "overdue",  "excluded",
										  "false_vote",  "disagreed", "diverged", "no_evidence"};
	long from = 0;
	json_t *named = e2e_wait_event(&e->coordinator, event, NULL, 0, &from);
	print_message("%s\n", e2e_text(named, "text"));
	const char *round = strstr(e2e_text(named, "text"), "round ");
	assert_non_null(round);
	const long index = strtol(round + strlen("round "), NULL, 10) - 1; /* logs count from 1 */
	assert_in_range(index, FIRST_LIE, FIRST_LIE + 1);
	json_decref(named);
	for (size_t i = 0; i < sizeof blaming / sizeof blaming[0]; i++) {
		json_t *ev;
		for (from = 0; (ev = e2e_find_event(e->coordinator.log, blaming[i], NULL, 0, &from)) != NULL; json_decref(ev))
			assert_non_null(strstr(e2e_text(ev, "text"), "member 3"));
	}
}

static void play(struct e2e *e, const char *event) {
	static const int honest[] = {0, 1, 2};
	char chain[65], full[65];
	e2e_assert_same_end(e, honest, HONEST, chain, full);
	check_named(e, event);
}

/* Two signatures of one owner are proof: it is banned, with the proof in `status`. */
static void one_that_signs_two_lists_is_banned(void **state) {
	static struct e2e e;
	start(&e, state, "equivocates");
	play(&e, "equivocated");
	json_t *status = e2e_status(&e), *proofs = json_object_get(status, "proofs");
	assert_int_equal(json_array_size(proofs), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(proofs, 0), "member")), EVIL);
	json_decref(status);
	process_assert_exit(&e.workers[EVIL], STATUS_BANNED);
}

static void one_that_seals_falsely_is_left_out(void **state) {
	static struct e2e e;
	start(&e, state, "false_seal");
	play(&e, "suspected");
}

static void one_that_changes_its_contribution_is_left_out(void **state) {
	static struct e2e e;
	start(&e, state, "changes");
	play(&e, "suspected");
}

/* Two signed roots are the same: no member needs to see them. */
static void one_that_signs_two_contributions_is_banned(void **state) {
	static struct e2e e;
	start(&e, state, "two_roots");
	play(&e, "two_roots");
	json_t *status = e2e_status(&e), *proof = json_array_get(json_object_get(status, "proofs"), 0);
	assert_non_null(proof);
	assert_int_equal(json_integer_value(json_object_get(proof, "member")), EVIL);
	assert_string_equal(json_string_value(json_object_get(proof, "of")), "contribution");
	json_decref(status);
	process_assert_exit(&e.workers[EVIL], STATUS_BANNED);
	long from = 0;
	json_t *checked = e2e_wait_event(&e.workers[0], "proof", "member", EVIL, &from);
	assert_true(json_is_true(json_object_get(checked, "holds")));
	json_decref(checked);
}

/* The coordinator refuses its reports: it ends, and the others commit every round without it. */
static void one_that_commits_without_a_signature_does_not_count(void **state) {
	static const int honest[] = {0, 1, 2};
	static struct e2e e;
	char chain[65], full[65];
	start(&e, state, "false_root");
	e2e_assert_same_end(&e, honest, HONEST, chain, full);
	process_assert_exit(&e.workers[EVIL], STATUS_BANNED);
	char *log = scratch_read(e.workers[EVIL].log, NULL);
	assert_non_null(strstr(log, "is not signed by the sender's key"));
	free(log);
}

/* Three honest workers of a coordinator that does `attack` (evil_documents.c). */
static void start_misled(struct e2e *e, void **state, const char *config, const char *attack) {
	*state = e;
	e2e_open(e, config, HONEST);
	process_signal(&e->coordinator, SIGTERM);
	process_assert_exit(&e->coordinator, 0);
	e->coordinator_program = "rivulet-evil-coordinator";
	e->coordinator_env = attack;
	e2e_start_coordinator(e);
	for (int i = 0; i < HONEST; i++)
		e2e_start_worker(e, i, "rivulet-worker", NULL);
}

/* No worker takes a roster in which the coordinator names a root of its own making. */
static void a_root_that_the_coordinator_makes_up_is_refused(void **state) {
	static struct e2e e;
	long from = 0;
	start_misled(&e, state, run_config, "RIVULET_EVIL_COORDINATOR=root=1");
	for (int i = 0; i < HONEST; i++, from = 0) {
		json_t *refused = e2e_wait_event(&e.workers[i], "document", NULL, 0, &from);
		assert_non_null(strstr(e2e_text(refused, "text"), "member 1 has not signed the root"));
		json_decref(refused);
	}
	json_t *status = e2e_status(&e);
	assert_int_equal(json_integer_value(json_object_get(status, "round")), 0);
	json_decref(status);
}

static void expect_draw_named(const struct process *w, int round, const char *words, long *from) {
	json_t *named = e2e_find_event(w->log, "audit_draw", NULL, 0, from);
	assert_non_null(named);
	assert_int_equal(e2e_int(named, "round"), round);
	assert_non_null(strstr(e2e_text(named, "text"), words));
	json_decref(named);
}

/* Every worker says so, of these rounds alone, and the run goes on: who draws whom is the
 * coordinator's word. */
static void draws_that_were_not_promised_are_named(void **state) {
	static struct e2e e;
	char config[1024];
	(void)snprintf(config, sizeof config, "%saudit-chunks = 2\n", run_config);
	start_misled(&e, state, config, "RIVULET_EVIL_COORDINATOR=draws=1");
	for (int i = 0; i < HONEST; i++)
		process_assert_exit(&e.workers[i], 0);
	for (int i = 0; i < HONEST; i++) {
		long from = 0;
		expect_draw_named(&e.workers[i], 1, "does not show the secret", &from);
		expect_draw_named(&e.workers[i], 3, "promised no secret", &from);
		assert_null(e2e_find_event(e.workers[i].log, "audit_draw", NULL, 0, &from));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_that_signs_two_contributions_is_banned, e2e_teardown),
		cmocka_unit_test_teardown(one_that_commits_without_a_signature_does_not_count, e2e_teardown),
		cmocka_unit_test_teardown(a_root_that_the_coordinator_makes_up_is_refused, e2e_teardown),
		cmocka_unit_test_teardown(draws_that_were_not_promised_are_named, e2e_teardown),
		cmocka_unit_test_teardown(one_that_signs_two_lists_is_banned, e2e_teardown),
		cmocka_unit_test_teardown(one_that_seals_falsely_is_left_out, e2e_teardown),
		cmocka_unit_test_teardown(one_that_changes_its_contribution_is_left_out, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
