/* test_attack_goes.c: one of four workers reports in each all-reduce that it has lost the run's
 * state (evil_reports.c), or gives nothing and says that it waits (evil_links.c). It costs the
 * others a few attempts, not one in each round; no honest member is named, and the others commit
 * every round. Real processes on loopback. */
#include "tests/common/check.h"
#include "tests/e2e/ends.h"
#include "tests/e2e/rounds.h"

#include <string.h>

enum { HONEST = 3, EVIL = 3, WORKERS = HONEST + 1, MOST_ATTEMPTS = 4 /* in rounds 0, 1, 3 and 7 */ };

#define RUN                                                                                                            \
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 4\ndata-shards = 4\n"                                 \
	"min-workers = 3\nsteps-per-round = 2\nwarmup-steps = 2\nlr = 0.003\n"

/* Returns how many events of that name there are: all about the liar. */
static int count(struct e2e *e, const char *event) {
	int n = 0;
	long from = 0;
	json_t *ev;
	for (; (ev = e2e_find_event(e->coordinator.log, event, NULL, 0, &from)) != NULL; json_decref(ev), n++)
		assert_non_null(strstr(e2e_text(ev, "text"), "member 3"));
	return n;
}

static void play(struct e2e *e, void **state, const char *config, const char *lie) {
	static const int honest[] = {0, 1, 2};
	char chain[65], full[65];
	*state = e;
	e2e_open(e, config, WORKERS);
	e2e_gate_at(e, 0);
	e2e_start_gated_workers(e, HONEST);
	e2e_start_worker(e, EVIL, "rivulet-worker-evil", lie);
	e2e_wait_level(e, WORKERS);
	e2e_open_gate(e);
	e2e_assert_same_end(e, honest, HONEST, chain, full);
}

/* Nothing says that it lies: it is left out for what it costs. */
static void one_that_loses_its_state_each_time_is_left_out(void **state) {
	static struct e2e e;
	play(&e, state, RUN "rounds = 12\n" E2E_PATIENT, "RIVULET_EVIL=syncs=0");
	assert_in_range(count(&e, "lost"), 2, MOST_ATTEMPTS);
	assert_true(count(&e, "unsteady") > 0);
	assert_int_equal(count(&e, "excluded"), 0);
}

/* Row 5 of docs/security.md: its PINGs say that it waits. The others name it. */
static void one_that_withholds_and_says_that_it_waits_is_named(void **state) {
	static struct e2e e;
	play(&e, state, RUN "rounds = 2\n" E2E_STEADY, "RIVULET_EVIL=withhold=1");
	assert_in_range(count(&e, "suspected"), 1, 2);
	(void)count(&e, "excluded");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_that_loses_its_state_each_time_is_left_out, e2e_teardown),
		cmocka_unit_test_teardown(one_that_withholds_and_says_that_it_waits_is_named, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
