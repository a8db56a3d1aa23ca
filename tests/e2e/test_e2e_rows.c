/* test_e2e_rows.c: runs whose rosters are laid out in rows and columns: real workers end in the
 * bits of the lab's run of the same layout. With fp32: int8 hides differences of the last bits. */
#include "ends.h"
#include "tests/common/check.h"

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
	ends_as_in_one_process(state, SMALL_RUN "data-shards = 4\nmin-workers = 4\nrow-size = 2\n", 4);
}

static void nine_workers_in_three_rows(void **state) {
	ends_as_in_one_process(state, SMALL_RUN "data-shards = 9\nmin-workers = 9\nrow-size = 3\n", 9);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(four_workers_in_two_rows, e2e_teardown),
		cmocka_unit_test_teardown(nine_workers_in_three_rows, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
