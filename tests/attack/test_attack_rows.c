/* test_attack_rows.c: one of nine workers in rows of five and four lies as an owner (evil.h): in
 * the sum that it makes of its row, or in the mean that it makes of the rows' sums. All votes
 * agree. Audits find it, name and ban nobody else, and the run goes on with eight in rows of four.
 * Real processes on loopback. All own as much: by its line the liar might own nothing. */
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/e2e/ends.h"
#include "tests/e2e/rounds.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 9, EVIL = 8, STATUS_BANNED = 4 };

static const char run_config[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 4\ndata-shards = 9\n"
	"min-workers = 8\nrow-size = 5\nownership = equal\nsteps-per-round = 4\nwarmup-steps = 10\nlr = 0.003\n"
	"audit-chunks = 8\naudit-rollback = true\n" E2E_STEADY;

/* Starts all, the last one with `evil` if that is not NULL; all of them are in the first round. */
static void start(struct e2e *e, int rounds, const char *evil) {
	char config[1024], env[64];
	(void)snprintf(config, sizeof config, "%srounds = %d\n", run_config, rounds);
	e2e_open(e, config, WORKERS);
	e2e_gate_at(e, 0);
	e2e_start_gated_workers(e, evil != NULL ? EVIL : WORKERS);
	if (evil != NULL) {
		(void)snprintf(env, sizeof env, "RIVULET_EVIL=%s", evil);
		e2e_start_worker(e, EVIL, "rivulet-worker-evil", env);
	}
	e2e_wait_level(e, WORKERS);
	e2e_open_gate(e);
}

static int64_t found(struct e2e *e, const char *what) {
	json_t *status = e2e_status(e), *audits = json_object_get(status, "audits");
	const int64_t n = json_integer_value(json_object_get(audits, what));
	json_decref(status);
	return n;
}

static void assert_nobody_is_blamed(struct e2e *e, int n) {
	for (int m = 0; m < n; m++)
		assert_int_equal(e2e_strikes(e, (size_t)m), 0);
	assert_null(e2e_find_event(e->coordinator.log, "audit_false", NULL, 0, NULL));
	assert_null(e2e_find_event(e->coordinator.log, "sums_unshown", NULL, 0, NULL));
	assert_null(e2e_find_event(e->coordinator.log, "unaudited", NULL, 0, NULL));
}

/* It is found long before the run's end: of eight chunks a round it made a ninth or more. */
static void is_found(void **state, const char *evil) {
	enum { LONG = 1000 };
	static struct e2e e;
	int round = -1, member = -1;
	*state = &e;
	start(&e, LONG, evil);
	json_t *lied = e2e_wait_event(&e.coordinator, "audit_lied", NULL, 0, NULL);
	print_message("%s: %s\n", evil, e2e_text(lied, "text"));
	assert_int_equal(sscanf(e2e_text(lied, "text"), "round %d: member %d", &round, &member), 2);
	json_decref(lied);
	assert_int_equal(member, EVIL);
	process_assert_exit(&e.workers[EVIL], STATUS_BANNED);
	json_decref(e2e_wait_event(&e.coordinator, "audit_rollback", NULL, 0, NULL));
	static const int honest[] = {0, 1, 2, 3, 4, 5, 6, 7};
	e2e_wait_for_round(&e, honest, EVIL, round + 3);
	assert_nobody_is_blamed(&e, EVIL);
}

static void a_false_sum_of_a_row_is_found(void **state) {
	is_found(state, "sum=-1");
}

static void a_false_mean_of_true_sums_is_found(void **state) {
	is_found(state, "join=-1");
}

/* Until so many audits have ended: how many of them end in a round depends on how long it takes. */
static void honest_owners_in_rows_are_found_right(void **state) {
	enum { LONG = 100000, RIGHT = 40 };
	static struct e2e e;
	*state = &e;
	start(&e, LONG, NULL);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "audits that find owners right"); found(&e, "right") < RIGHT;)
		deadline_pause(&d);
	print_message("%d right of %d, %d open, %d unresolved\n", (int)found(&e, "right"), (int)found(&e, "drawn"),
				  (int)found(&e, "open"), (int)found(&e, "unresolved"));
	assert_int_equal(found(&e, "wrong"), 0);
	assert_nobody_is_blamed(&e, WORKERS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_false_sum_of_a_row_is_found, e2e_teardown),
		cmocka_unit_test_teardown(a_false_mean_of_true_sums_is_found, e2e_teardown),
		cmocka_unit_test_teardown(honest_owners_in_rows_are_found_right, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
