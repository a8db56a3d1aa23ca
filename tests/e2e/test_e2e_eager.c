/* test_e2e_eager.c: real workers whose outer steps come one whole round late (updates = eager,
 * delayed), so that the all-reduce of a round runs while all inner steps of the next go on: the
 * bits of the lab, also when one is killed at delicate moments of it, or stopped and started. More
 * interruptions: test_e2e_eager_interrupted.c. */
#include "ends.h"
#include "interruptions.h"
#include "tests/common/check.h"

enum { WORKERS = 2 };

#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 5\nsnapshot-every = 3\n" E2E_PATIENT
#define EAGER "updates = eager\neager-share = 0.5\n"
static void check_a_run(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_check_run(&e, config, WORKERS);
}

static void eager_updates_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN EAGER "rounds = 8\nweight-by-tokens = true\n");
}

static void delayed_updates_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN "updates = delayed\nouter = adam\nrounds = 6\n");
}

static void eager_updates_with_error_feedback_end_in_the_labs_bits(void **state) {
	check_a_run(state, RUN EAGER "rounds = 8\ncodec = int4\nerror-feedback = 0.9\nouter = sgd\n");
}

/* What is its own is in the replica too. */
static void killed_with_its_replica_on_disk_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN EAGER "rounds = 30\n", WORKERS);
	e2e_die_without_loss(&e);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

/* Told to stop in the middle of the steps ahead, and started again. */
static void stopped_and_started_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN EAGER "rounds = 50\n", WORKERS);
	e2e_stop_and_start(&e, 10, 4);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(eager_updates_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(delayed_updates_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(eager_updates_with_error_feedback_end_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(killed_with_its_replica_on_disk_it_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(stopped_and_started_it_ends_in_the_labs_bits, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
