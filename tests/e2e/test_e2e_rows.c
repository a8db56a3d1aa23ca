/* test_e2e_rows.c: runs whose rosters are laid out in rows and columns: real workers end in the
 * bits of the lab's run of the same layout. With fp32: int8 hides differences of the last bits.
 * Where the lab is asked with equal ownership: else lines decide who shares a row, and the lab has
 * none. */
#include "ends.h"
#include "interruptions.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL_RUN                                                                                                      \
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 16\nbatch = 1\nsteps-per-round = 3\nrounds = 4\n"                 \
	"snapshot-every = 2\ncodec = fp32\n" E2E_PATIENT

static void ends_as_in_one_process(void **state, const char *config, int workers) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, config, workers);
	e2e_start_workers(&e, workers);
	e2e_assert_labs_end(&e, workers, chain, full);
}

static void four_workers_in_two_rows(void **state) {
	ends_as_in_one_process(state, SMALL_RUN "ownership = equal\ndata-shards = 4\nmin-workers = 4\nrow-size = 2\n", 4);
}

static void nine_workers_in_three_rows(void **state) {
	ends_as_in_one_process(state, SMALL_RUN "ownership = equal\ndata-shards = 9\nmin-workers = 9\nrow-size = 3\n", 9);
}

/* Rules that look at all contributions of a row: six workers in two rows of three end as the lab
 * does, and as a replay of their traces. At a limit of one median, norms are limited in each
 * chunk. */
static void six_workers_in_two_rows_by(void **state, const char *merge) {
	static struct e2e e;
	char config[512], chain[65], full[65];
	*state = &e;
	(void)snprintf(config, sizeof config, SMALL_RUN "ownership = equal\ndata-shards = 6\nmin-workers = 6\n%s", merge);
	e2e_open(&e, config, 6);
	e2e_start_workers(&e, 6);
	e2e_assert_labs_end(&e, 6, chain, full);
	e2e_assert_replayed(&e, 6, chain, full);
}

static void rows_by_agreement(void **state) {
	six_workers_in_two_rows_by(state, "row-size = 3\nmerge = agreed\nouter-clip = 1\n");
}

static void trimmed_rows(void **state) {
	six_workers_in_two_rows_by(state, "row-size = 5\nmerge = trimmed\n");
}

static void centered_rows(void **state) {
	six_workers_in_two_rows_by(state, "row-size = 3\nmerge = centered\nouter-clip = 1\n");
}

/* One of nine is killed as its second all-reduce begins: its column goes to another one of its row,
 * the others end in one state, and a replay of all traces, with the rows as they were, ends there,
 * too. It starts first, so it takes part. Rows and columns are by lines as measured. */
static void one_of_nine_is_killed(void **state) {
	static struct e2e e;
	const int survivors[] = {0, 1, 2, 3, 4, 5, 6, 7};
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, SMALL_RUN "data-shards = 9\nmin-workers = 8\nrow-size = 3\n", 9);
	e2e_start_worker(&e, 8, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=reduce.start@2=kill");
	e2e_start_workers(&e, 8);
	e2e_assert_same_end(&e, survivors, 8, chain, full);
	process_assert_exit(&e.workers[8], 128 + SIGKILL);
	e2e_assert_replayed(&e, 9, chain, full);
}

/* Residuals of contributions and of means, in rows. A killed owner's columns move, and it comes
 * back without what it had not said. */
#define SPARSE_ROWS                                                                                                    \
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 16\nbatch = 1\nsteps-per-round = 3\nrounds = 60\n"                \
	"snapshot-every = 3\ncodec = topk64\nmean-codec = topk64\nerror-feedback = 0.95\nmean-feedback = 1\nouter = sgd\n" \
	"chunk-elems = 512\ndata-shards = 6\nmin-workers = 2\nrow-size = 3\n" E2E_STEADY

static void sparse_rows_with_deaths_are_replayed(void **state) {
	static struct e2e e;
	static const char *const deaths[] = {"reduce.start@3", "replica.begin@3", "ready.after@2", "persist.before@2",
										 "vote.after@2"};
	enum { N = 6 };
	static const int all[N] = {0, 1, 2, 3, 4, 5};
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, SPARSE_ROWS, N);
	e2e_die_often(&e, deaths, sizeof deaths / sizeof deaths[0]);
	e2e_assert_same_end(&e, all, N, chain, full);
	e2e_assert_replayed(&e, N, chain, full);
}

/* Returns how many rows the coordinator's status has. */
static int rows_of(struct e2e *e) {
	json_t *status = e2e_status(e), *m;
	int64_t last = 0;
	size_t i;
	json_array_foreach(json_object_get(status, "members"), i, m) {
		const int64_t row = json_integer_value(json_object_get(m, "row")); /* 0 for null */
		last = row > last ? row : last;
	}
	json_decref(status);
	return (int)last + 1;
}

/* N - 1 begin; the last of them is killed while it sends the partial sums of its column in the
 * second round, and one more joins after the third. Rows and columns are equal: by lines it may
 * own no column. All that are left end in one state, in which a replay of all traces ends, too. */
static void some_die_and_some_come(struct e2e *e, int n, int row_size) {
	enum { MET = 3 /* rounds before the last one joins */ };
	const int dies = n - 2, late = n - 1;
	int left[E2E_MAX_WORKERS];
	char config[512], chain[65], full[65];
	assert_in_range(n, 4, E2E_MAX_WORKERS);
	snprintf(config, sizeof config,
			 "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 16\nbatch = 1\nsteps-per-round = 2\nrounds = 6\n"
			 "snapshot-every = 2\ncodec = fp32\ndata-shards = %d\nmin-workers = %d\nrow-size = %d\n"
			 "ownership = equal\n" E2E_PATIENT,
			 n, n - 2, row_size);
	e2e_open(e, config, n);
	e2e_gate_at(e, 0);
	for (int i = 0; i < dies; i++)
		e2e_start_worker(e, left[i] = i, E2E_GATED, NULL);
	e2e_start_worker(e, dies, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=column.sum-mid@2=kill");
	e2e_wait_level(e, n - 1);
	e2e_gate_at(e, MET);
	e2e_wait_for_round(e, left, dies, MET);
	process_assert_exit(&e->workers[dies], 128 + SIGKILL);
	assert_int_equal(rows_of(e), (n + row_size / 2) / row_size);
	e2e_start_worker(e, left[dies] = late, E2E_GATED, NULL);
	e2e_wait_level_but(e, n, dies);
	e2e_open_gate(e);
	e2e_assert_same_end(e, left, n - 1, chain, full);
	e2e_assert_replayed(e, n, chain, full);
}

static void sixteen_workers_in_rows_of_four(void **state) {
	static struct e2e e;
	*state = &e;
	some_die_and_some_come(&e, 16, 4);
}

/* By hand, some minutes on two cores: RIVULET_MANY=1 build/release/bin/test_e2e_rows */
static void thirty_six_workers_in_rows_of_six(void **state) {
	static struct e2e e;
	if (getenv("RIVULET_MANY") == NULL)
		skip();
	*state = &e;
	some_die_and_some_come(&e, 36, 6);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(four_workers_in_two_rows, e2e_teardown),
		cmocka_unit_test_teardown(nine_workers_in_three_rows, e2e_teardown),
		cmocka_unit_test_teardown(rows_by_agreement, e2e_teardown),
		cmocka_unit_test_teardown(trimmed_rows, e2e_teardown),
		cmocka_unit_test_teardown(centered_rows, e2e_teardown),
		cmocka_unit_test_teardown(one_of_nine_is_killed, e2e_teardown),
		cmocka_unit_test_teardown(sixteen_workers_in_rows_of_four, e2e_teardown),
		cmocka_unit_test_teardown(thirty_six_workers_in_rows_of_six, e2e_teardown),
		cmocka_unit_test_teardown(sparse_rows_with_deaths_are_replayed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
