/* test_e2e_drip.c: a peer that sends one byte a second, and tells the coordinator all the while
 * that it is well: it is the missing progress that counts, so the others take the round up again
 * without it, and go on. */
#include "e2e.h"
#include "rounds.h"
#include "tests/common/check.h"

enum { DRIPS = 3, ROUNDS_ON = 2 };

static const char endless[] = "n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							  "min-workers = 3\nsteps-per-round = 3\nrounds = 100000\nsnapshot-every = 4\n" E2E_STEADY;
static const int others[] = {0, 1, 2};

static void a_peer_that_sends_one_byte_a_second(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, endless, 4);
	e2e_start_workers(&e, 3);
	e2e_start_worker(&e, DRIPS, "rivulet-worker-drip", NULL);
	json_t *drips = e2e_wait_event(&e.workers[DRIPS], "drips", NULL, 0, NULL);
	int64_t round = e2e_int(drips, "round");
	double since_s = e2e_time(drips);
	json_decref(drips);
	e2e_assert_committed_by_survivors(&e, round, since_s, "one byte a second in the middle of an all-reduce");
	e2e_wait_for_round(&e, others, 3, round + ROUNDS_ON);
	e2e_assert_same_chain(&e, others, 3, round + ROUNDS_ON);
	e2e_assert_no_state_was_wrong(&e, 3);
	assert_false(process_has_ended(&e.workers[DRIPS])); /* and it is not refused: its line may be better tomorrow */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_peer_that_sends_one_byte_a_second, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
