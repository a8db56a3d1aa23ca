/* test_e2e_healing.c: a worker is cut off until the others have gone on without it, or gets another
 * address, in a run whose rounds are nearly all exchange: it takes part again. How long it took is
 * printed, not asserted; bench/heal.sh measures it. */
#include "rounds.h"
#include "sites.h"
#include "tests/common/check.h"

enum { WORKERS = 4, CUT_OFF = 3, SITES = WORKERS + 1, DELAY_MS = 20, LINE_BITS_PER_S = 5000000, SKIPPED = 77 };

/* 0.83 M parameters: an exchange takes more than two seconds on these lines. */
static const char mostly_exchange[] =
	"n-layer = 4\nn-head = 4\nn-embd = 128\ncontext = 16\nbatch = 1\ndata-shards = 4\n"
	"min-workers = 2\nsteps-per-round = 1\nrounds = 100000\nsnapshot-every = 16\n";

static struct world {
	struct sites sites;
	struct e2e e;
} w;

static int teardown(void **state) {
	(void)state;
	e2e_close(&w.e);
	sites_close(&w.sites);
	return 0;
}

enum { LOST_ROUND = 2 }; /* in its exchange things happen */

static void open_world(void) {
	char why[256];
	assert_true(sites_open(&w.sites, SITES, DELAY_MS, why));
	for (int i = 1; i < SITES; i++)
		sites_rate(&w.sites, i, LINE_BITS_PER_S);
	e2e_open_at(&w.e, w.sites.at, mostly_exchange, WORKERS);
	e2e_start_workers(&w.e, WORKERS);
	json_decref(e2e_wait_event(&w.e.workers[CUT_OFF], "attempt", "round", LOST_ROUND, NULL));
}

static void a_worker_whose_line_was_cut_takes_part_again(void **state) {
	static const int others[] = {0, 1, 2};
	(void)state;
	open_world();
	sites_cut(&w.sites, CUT_OFF + 1);
	e2e_wait_for_round(&w.e, others, WORKERS - 1, LOST_ROUND + 3);
	long from = e2e_lines_so_far(&w.e, CUT_OFF);
	sites_heal(&w.sites, CUT_OFF + 1);
	e2e_assert_takes_part_again(&w.e, CUT_OFF, from);
	e2e_assert_no_state_was_wrong(&w.e, WORKERS);
}

static void a_worker_that_gets_another_address_takes_part_again(void **state) {
	(void)state;
	long from = 0;
	open_world();
	sites_move(&w.sites, CUT_OFF + 1);
	json_t *attempt = e2e_wait_event(&w.e.workers[CUT_OFF], "attempt", "round", LOST_ROUND + 1, &from);
	int64_t round = e2e_int(attempt, "round");
	json_decref(attempt);
	json_decref(e2e_wait_event(&w.e.workers[CUT_OFF], "round", "round", round + 1, &from));
	e2e_assert_same_chain(&w.e, (const int[]){0, CUT_OFF}, 2, round + 1);
	e2e_assert_no_state_was_wrong(&w.e, WORKERS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_worker_whose_line_was_cut_takes_part_again, teardown),
		cmocka_unit_test_teardown(a_worker_that_gets_another_address_takes_part_again, teardown),
	};
	if (!sites_possible())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
