/* test_e2e_wire.c: the bytes that a whole run puts on the wire. */
#include "ends.h"
#include "tests/common/check.h"

/* About a million parameters. */
static const char wide_run[] = "n-layer = 4\nn-head = 4\nn-embd = 144\ncontext = 16\nbatch = 1\ndata-shards = 4\n"
							   "min-workers = 4\nsteps-per-round = 1\nrounds = 4\nownership = equal\n" E2E_PATIENT;

static void bytes_on_the_wire_are_the_formula_plus_little(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, wide_run, 4);
	e2e_start_workers(&e, 4);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, 3}, 4, chain, full);
	for (int i = 0; i < 4; i++) {
		char dir[E2E_PATH];
		e2e_worker_dir(&e, i, dir);
		json_t *end = e2e_metrics(dir, "end");
		double sent = (double)e2e_int(end, "bytes_sent"), formula = (double)e2e_int(end, "formula_bytes");
		print_message("worker %d: %.0f bytes on the wire, formula %.0f, overhead %.2f %%\n", i, sent, formula,
					  100 * (sent / formula - 1));
		assert_true(sent >= formula);
		assert_true(sent < 1.03 * formula);
		json_decref(end);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bytes_on_the_wire_are_the_formula_plus_little, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
