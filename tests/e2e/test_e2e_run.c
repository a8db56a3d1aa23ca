/* test_e2e_run.c: whole runs without faults: the same bits as in one process. */
#include "ends.h"
#include "tests/common/check.h"

static const char small_run[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
								"min-workers = 4\nsteps-per-round = 5\nrounds = 6\nsnapshot-every = 2\n" E2E_PATIENT;
/* MuLoCo's inner optimizer and FedProx's term: the inner loop alone, of which nothing travels. */
static const char other_inner_run[] =
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
	"min-workers = 4\nsteps-per-round = 5\nrounds = 3\ninner = muon\nprox-mu = 0.05\n" E2E_PATIENT;
/* About a million parameters. */
static const char uneven_run[] = "n-layer = 4\nn-head = 4\nn-embd = 144\ncontext = 16\nbatch = 1\ndata-shards = 4\n"
								 "min-workers = 4\nsteps-per-round = 1\nrounds = 3\n" E2E_PATIENT;

/* All ended in the bits of the lab. */
static void assert_the_labs_end(struct e2e *e) {
	char chain[65], full[65];
	e2e_assert_labs_end(e, 4, chain, full);
}

static void ends_as_in_one_process(void **state, const char *config) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, config, 4);
	e2e_start_workers(&e, 4);
	assert_the_labs_end(&e);
}

static void four_processes_end_in_the_same_bits_as_one(void **state) {
	ends_as_in_one_process(state, small_run);
}

static void with_another_inner_optimizer_too(void **state) {
	ends_as_in_one_process(state, other_inner_run);
}

/* One of them may send little, less than the others do on the busiest machine: it owns less of the
 * vector, and the result is the lab's all the same. */
static void ownership_by_bandwidth_end_in_the_same_bits(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, uneven_run, 4);
	for (int i = 0; i < 4; i++) {
		e.worker_args[0] = i == 1 ? "--max-up" : NULL;
		e.worker_args[1] = i == 1 ? "3mbit" : NULL;
		e2e_start_worker(&e, i, NULL, NULL);
	}
	e.worker_args[0] = NULL;
	assert_the_labs_end(&e);
	json_t *status = e2e_status(&e);
	const json_t *slow = json_array_get(json_object_get(status, "members"), 1);
	assert_in_range(e2e_int(slow, "up_bytes_per_s"), 1, 375000);
	assert_true(e2e_int(slow, "owned_chunks") * 4 < e2e_int(slow, "n_chunks"));
	json_decref(status);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(four_processes_end_in_the_same_bits_as_one, e2e_teardown),
		cmocka_unit_test_teardown(with_another_inner_optimizer_too, e2e_teardown),
		cmocka_unit_test_teardown(ownership_by_bandwidth_end_in_the_same_bits, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
