/* test_attack_consent.c: row 29 of docs/security.md. A malicious coordinator (evil_documents.c)
 * shows a volunteer less than its run asks for, and hopes to get the rest unseen with the answer to
 * the join. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/e2e/e2e.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIG E2E_STEADY "rounds = 1000000\nsteps-per-round = 2\nmin-workers = 1\n"

static void expect_no_membership(const struct e2e *e, int i) {
	static const char *const files[] = {"run.conf", "member.conf", "metrics.jsonl"};
	char dir[E2E_PATH], path[E2E_PATH + 16];
	struct stat st;
	e2e_worker_dir(e, i, dir);
	for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
		(void)snprintf(path, sizeof path, "%s/%s", dir, files[k]);
		assert_int_not_equal(stat(path, &st), 0);
	}
}

static void what_was_not_shown_is_not_done(void **state) {
	static struct e2e whole, *const e = &whole;
	*state = e;
	e2e_open(e, CONFIG, 2);
	process_signal(&e->coordinator, SIGTERM);
	process_assert_exit(&e->coordinator, 0);
	e->coordinator_program = "rivulet-evil-coordinator";
	e->coordinator_env = "RIVULET_EVIL_COORDINATOR=rounds=9";
	e2e_start_coordinator(e);
	e2e_launch_worker(e, 0);
	process_assert_exit(&e->workers[0], 1);
	char *log = scratch_read(e->workers[0].log, NULL);
	if (!strstr(log, "another configuration than the one that you agreed to"))
		fail_msg("%s", log);
	free(log);
	expect_no_membership(e, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_was_not_shown_is_not_done, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
