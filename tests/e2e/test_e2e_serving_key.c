/* A run whose serving key was stolen: the operator replaces it, with workers that go on in the
 * middle of the run; the thief's coordinator is followed by nobody; a newcomer joins by a link of
 * before. */
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"
#include "tests/e2e/e2e.h"
#include "tests/e2e/rounds.h"

#include "base/file.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG E2E_STEADY "rounds = 9\nsteps-per-round = 2\nmin-workers = 2\n"

static void stop_coordinator(struct e2e *e) {
	process_signal(&e->coordinator, SIGTERM);
	process_assert_exit(&e->coordinator, 0);
}

static void copy_key(const struct e2e *e, const char *from, const char *to) {
	enum { KEY_MAX = 4096 };
	char a[E2E_PATH], b[E2E_PATH];
	uint8_t *bytes;
	size_t n;
	e2e_path(e, from, a);
	e2e_path(e, to, b);
	assert_ok(rv_file_read(a, KEY_MAX, &bytes, &n, &et));
	assert_ok(rv_file_write_atomic(b, bytes, n, 0600, &et));
	free(bytes);
}

static void rotate(struct e2e *e, int status) {
	char dir[E2E_PATH], away[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_path(e, "root.key", away);
	const char *argv[] = {"rivulet-coordinator", "rotate-key", "--dir", dir, "--root-key", away, NULL};
	(void)e2e_run(e, "rotate", argv, status);
}

/* Worker i hears of the serving key of this number. */
static void wait_serial(const struct e2e *e, int i, int64_t serial) {
	json_decref(e2e_wait_event(&e->workers[i], "serving_key", "serial", serial, NULL));
}

/* Worker 0 knows that the coordinator, which does not run, is away; *from moves past all that it
 * said before. */
static void wait_away(const struct e2e *e, long *from) {
	json_t *back;
	do {
		json_decref(e2e_wait_event(&e->workers[0], "coordinator_away", NULL, 0, from));
		back = e2e_find_event(e->workers[0].log, "coordinator_back", NULL, 0, from);
		json_decref(back);
	} while (back != NULL);
}

static void a_stolen_key_is_replaced(void **state) {
	static struct e2e whole, *const e = &whole;
	static const int both[] = {0, 1};
	*state = e;
	e2e_open(e, CONFIG, 3);
	copy_key(e, "coordinator/root.key", "root.key"); /* as an operator should: away from the run */
	char root[E2E_PATH];
	e2e_path(e, "coordinator/root.key", root);
	assert_int_equal(unlink(root), 0);
	e2e_gate_at(e, 2);
	e2e_start_gated_workers(e, 2);
	e2e_wait_for_round(e, both, 2, 2); /* they listen to the coordinator, and will miss it */
	rotate(e, 1);                      /* it is being served */
	copy_key(e, "coordinator/run.key", "stolen.key");
	stop_coordinator(e);
	rotate(e, 0);
	e2e_start_coordinator(e);
	wait_serial(e, 0, 2);
	wait_serial(e, 1, 2);

	/* The thief serves the run at the run's address: nobody follows, however often workers ask. */
	enum { ASKED_AGAIN_US = 6000000 };
	long from = 0;
	json_decref(e2e_wait_event(&e->workers[0], "coordinator_back", NULL, 0, &from)); /* after the rotation */
	copy_key(e, "coordinator/run.key", "new.key");
	stop_coordinator(e);
	copy_key(e, "stolen.key", "coordinator/run.key");
	wait_away(e, &from);
	e2e_start_coordinator(e);
	(void)usleep(ASKED_AGAIN_US);
	assert_null(e2e_find_event(e->workers[0].log, "coordinator_back", NULL, 0, &from));
	stop_coordinator(e);
	copy_key(e, "new.key", "coordinator/run.key");
	e2e_start_coordinator(e);
	json_decref(e2e_wait_event(&e->workers[0], "coordinator_back", NULL, 0, &from));

	e2e_gate_at(e, 5);
	e2e_launch_worker(e, 2); /* its link is of before; its ticket, by which others let it in, is of now */
	json_decref(e2e_wait_event(&e->workers[2], "joined", "member", 2, NULL));
	e2e_open_gate(e);
	for (int i = 0; i < 3; i++)
		process_assert_exit(&e->workers[i], 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_stolen_key_is_replaced, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
