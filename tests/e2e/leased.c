/* leased.c: see leased.h. */
#include "leased.h"
#include "ends.h"
#include "tests/common/check.h"

void leased_open(struct e2e *e, const char *config, int n_workers) {
	e2e_open_published(e, config, LEASED_BLOCKS, n_workers);
}

int64_t leased_assert_replayed(struct e2e *e, int n, const char *chain, const char *full, int64_t *sequences) {
	char log[E2E_PATH];
	e2e_assert_replayed(e, n, chain, full);
	e2e_path(e, "replay.log", log);
	json_t *event = e2e_find_event(log, "replayed", NULL, 0, NULL);
	const int64_t passes = e2e_int(event, "passes");
	*sequences = e2e_int(event, "sequences");
	assert_int_equal(passes, e2e_int(event, "read_until") / LEASED_PASS);
	json_decref(event);
	return passes;
}
