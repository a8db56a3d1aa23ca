/* test_e2e_slow_lines.c: real workers behind lines of 10 and of 1 Mbit/s, with the timeouts that a
 * run has by default, in rounds that last longer than any of them: all rounds are committed, over
 * everybody, and nobody is put away for being slow. */
#include "ends.h"
#include "sites.h"
#include "tests/common/check.h"

enum { WORKERS = 3, ROUNDS = 2, DELAY_MS = 20, SKIPPED = 77 };

static const int everybody[] = {0, 1, 2};

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

/* All of them, in each round; how long the all-reduces took is printed. */
static void assert_all_took_part(int64_t reduce_us_at_least) {
	for (int i = 0; i < WORKERS; i++) {
		long from = 0;
		int rounds = 0;
		for (json_t *j; (j = e2e_find_event(w.e.workers[i].log, "round", NULL, 0, &from)); json_decref(j), rounds++)
			assert_int_equal(e2e_int(j, "participants"), WORKERS);
		assert_int_equal(rounds, ROUNDS);
	}
	char dir[E2E_PATH];
	e2e_worker_dir(&w.e, 0, dir);
	json_t *round = e2e_metrics(dir, "round");
	int64_t reduce_us = e2e_int(round, "reduce_us");
	json_decref(round);
	print_message("the last all-reduce took %.1f s\n", (double)reduce_us / 1e6);
	assert_true(reduce_us >= reduce_us_at_least); /* the line was what it should be */
}

/* `config` makes all-reduces of some seconds at this rate: 2 (N-1)/N of a byte per parameter. */
static void run_over(long bits_per_s, const char *config, int64_t reduce_us_at_least) {
	char why[256], chain[65], full[65];
	assert_true(sites_open(&w.sites, WORKERS + 1, DELAY_MS, why));
	for (int i = 0; i < WORKERS; i++)
		sites_rate(&w.sites, i + 1, bits_per_s);
	e2e_open_at(&w.e, w.sites.at, config, WORKERS);
	e2e_start_workers(&w.e, WORKERS);
	e2e_assert_same_end(&w.e, everybody, WORKERS, chain, full);
	assert_all_took_part(reduce_us_at_least);
}

static void ten_mbit(void **state) {
	(void)state;
	run_over(10000000,
			 "n-layer = 8\nn-head = 4\nn-embd = 256\ncontext = 16\nbatch = 1\ndata-shards = 3\nmin-workers = 3\n"
			 "steps-per-round = 1\nrounds = 2\nsnapshot-every = 64\n",
			 4000000);
}

static void one_mbit(void **state) {
	(void)state;
	run_over(1000000,
			 "n-layer = 3\nn-head = 2\nn-embd = 128\ncontext = 16\nbatch = 1\ndata-shards = 3\nmin-workers = 3\n"
			 "steps-per-round = 1\nrounds = 2\nsnapshot-every = 64\n",
			 4000000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ten_mbit, teardown),
		cmocka_unit_test_teardown(one_mbit, teardown),
	};
	if (!sites_possible())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
