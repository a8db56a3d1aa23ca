/* test_e2e_overlap_killed.c: real workers that train ahead while a round is averaged; one of them
 * is killed at every delicate moment of it and comes back. */
#include "ends.h"
#include "interruptions.h"
#include "tests/common/check.h"

enum { WORKERS = 2 };

#define SHAPE                                                                                                          \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 5\nsnapshot-every = 3\n"
#define RUN SHAPE E2E_PATIENT
/* A round that has failed twice stays closed for a quarter of silence-ms, then for longer: deaths
 * in all-reduces are tested with a short one. Both workers are needed: none is left out. */
#define MORTAL SHAPE E2E_STEADY
/* Each round a third of the vector, of which a worker keeps half: what is in theta_local matters
 * for long. */
#define STREAMING "fragments = 3\nmix = 0.5\n"

static void killed_with_its_replica_on_disk_it_ends_in_the_labs_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, RUN "rounds = 30\noverlap-steps = 2\n", WORKERS);
	e2e_die_without_loss(&e);
	e2e_assert_lab_and_replay(&e, WORKERS);
}

static void killed_at_any_moment_it_ends_in_the_others_bits(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, MORTAL STREAMING "rounds = 100\noverlap-steps = 2\n", WORKERS);
	e2e_die_anywhere(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(killed_with_its_replica_on_disk_it_ends_in_the_labs_bits, e2e_teardown),
		cmocka_unit_test_teardown(killed_at_any_moment_it_ends_in_the_others_bits, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
