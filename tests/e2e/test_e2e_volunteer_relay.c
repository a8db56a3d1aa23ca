/* test_e2e_volunteer_relay.c: two members that do not reach each other, in a run whose operator has
 * no relay, meet at the one that a third member runs for others (--relay-for-others). */
#include "rounds.h"
#include "sites.h"
#include "tests/common/check.h"

#include <signal.h>
#include <string.h>

enum { WORKERS = 3, VOLUNTEER = 0, PARTED = 1, OTHER = 2, SITES = WORKERS + 1, DELAY_MS = 2, SKIPPED = 77 };

static const char run_of_three[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
								   "min-workers = 3\nsteps-per-round = 2\nrounds = 100000\nsnapshot-every = 4\n";

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

static void open_world(void) {
	char why[256];
	assert_true(sites_open(&w.sites, SITES, DELAY_MS, why));
	sites_part(&w.sites, PARTED + 1, OTHER + 1);
	e2e_open_at(&w.e, w.sites.at, run_of_three, WORKERS);
	process_signal(&w.e.coordinator, SIGTERM);
	process_assert_exit(&w.e.coordinator, 0);
	w.e.coordinator_option = "--no-relay";
	e2e_start_coordinator(&w.e);
}

/* Waits until the worker meets `member` through a relay. */
static void await_relayed(int worker, int64_t member, long *from) {
	for (bool relayed = false; !relayed;) {
		json_t *path = e2e_wait_event(&w.e.workers[worker], "path", "member", member, from);
		relayed = e2e_int(path, "member") == member && strcmp(e2e_text(path, "path"), "relayed") == 0;
		json_decref(path);
	}
}

static void two_meet_at_a_members_relay(void **state) {
	(void)state;
	long from = 0;
	open_world();
	w.e.worker_args[0] = "--relay-for-others=50mbit";
	e2e_start_worker(&w.e, VOLUNTEER, NULL, NULL);
	w.e.worker_args[0] = NULL;
	e2e_start_worker(&w.e, PARTED, NULL, NULL);
	e2e_start_worker(&w.e, OTHER, NULL, NULL);
	json_t *listed = e2e_wait_event(&w.e.workers[VOLUNTEER], "own_relay_listed", NULL, 0, NULL);
	assert_memory_equal(e2e_text(listed, "relay"), w.sites.at[VOLUNTEER + 1].host,
						strlen(w.sites.at[VOLUNTEER + 1].host));
	json_decref(listed);
	await_relayed(PARTED, OTHER, &from);
	json_decref(e2e_wait_event(&w.e.workers[PARTED], "round", "bytes_relayed", 1, &from));
	process_signal(&w.e.workers[VOLUNTEER], SIGINT);
	process_assert_exit(&w.e.workers[VOLUNTEER], 0);
	json_t *closed = e2e_wait_event(&w.e.workers[VOLUNTEER], "own_relay_closed", "bytes", 1, NULL);
	json_decref(closed);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_meet_at_a_members_relay, teardown),
	};
	if (!sites_possible())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
