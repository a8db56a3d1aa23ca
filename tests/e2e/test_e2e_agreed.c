/* test_e2e_agreed.c: a coordinator that asks for more than a worker's person agreed to, with real
 * processes: at the join more memory or disk than allowed, which spends no invite; later, from a
 * store that was changed, more rounds. Each is refused with a sentence. */
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIG E2E_STEADY "rounds = 9\nsteps-per-round = 2\nmin-workers = 2\n"

/* ---- at the join ---- */

static void assert_not_joined(const struct e2e *e, int i) {
	char dir[E2E_PATH], path[E2E_PATH + 16];
	struct stat st;
	e2e_worker_dir(e, i, dir);
	snprintf(path, sizeof path, "%s/run.conf", dir);
	assert_int_not_equal(stat(path, &st), 0);
}

static void expect_refused(struct e2e *e, const char *option, const char *sentence) {
	e->worker_args[0] = option;
	e2e_launch_worker(e, 0);
	process_assert_exit(&e->workers[0], 1);
	char *log = scratch_read(e->workers[0].log, NULL);
	if (!strstr(log, sentence))
		fail_msg("%s: %s", option, log);
	free(log);
	assert_not_joined(e, 0);
	e->worker_args[0] = NULL;
}

static void more_than_is_allowed_spends_no_invite(void **state) {
	static struct e2e whole, *const e = &whole;
	*state = e;
	e2e_open(e, CONFIG, 2);
	expect_refused(e, "--max-memory=4MiB", "--max-memory allows 4");
	expect_refused(e, "--max-disk=100kB", "is too little for this run");
	e2e_start_workers(e, 2); /* the same link, without limits */
	process_assert_exit(&e->workers[0], 0);
	process_assert_exit(&e->workers[1], 0);
}

/* All of a short text is read from, so all of it must fit: the worker says so instead of fetching
 * it again and again, and trains where it just fits. */
static void a_cache_below_a_short_text_is_refused(void **state) {
	enum { BLOCKS = 64, SHARD_BLOCKS = 8, BYTES = BLOCKS * 32768 + BLOCKS / SHARD_BLOCKS * 1024 };
	static struct e2e whole, *const e = &whole;
	char fits[32];
	*state = e;
	e2e_publish(e, BLOCKS, SHARD_BLOCKS, 1);
	e2e_open_handed_out(e, E2E_STEADY "rounds = 3\nsteps-per-round = 2\nmin-workers = 1\n", 1);
	e->says_little = true;
	expect_refused(e, "--data-cache=600kB",
				   "--data-cache allows 600000 bytes for the run's text, and at least 2105344 must fit");
	assert_int_equal(BYTES, 2105344);
	(void)snprintf(fits, sizeof fits, "--data-cache=%d", BYTES);
	e->worker_args[0] = fits;
	e2e_launch_worker(e, 0);
	process_assert_exit(&e->workers[0], 0);
	e->worker_args[0] = NULL;
}

/* ---- later ---- */

/* Changes the configuration in the store of a coordinator that does not run. */
static void change_store(const struct e2e *e, const char *from, const char *to) {
	char path[E2E_PATH], command[256];
	sqlite3 *db = NULL;
	e2e_path(e, "coordinator/store.db", path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	snprintf(command, sizeof command,
			 "UPDATE run SET value = CAST(replace(value, '%s', '%s') AS BLOB) "
			 "WHERE key = 'config' AND instr(value, '%s')",
			 from, to, from);
	assert_int_equal(sqlite3_exec(db, command, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void restart_with(struct e2e *e, const char *from, const char *to) {
	process_signal(&e->coordinator, SIGTERM);
	process_assert_exit(&e->coordinator, 0);
	change_store(e, from, to);
	e2e_start_coordinator(e);
}

static void expect_not_followed(struct e2e *e, long *log_at) {
	json_t *j = e2e_wait_event(&e->workers[0], "document", NULL, 0, log_at);
	if (!strstr(e2e_text(j, "text"), "agreed to"))
		fail_msg("%s", e2e_text(j, "text"));
	json_decref(j);
}

static void what_is_asked_later_is_not_followed(void **state) {
	static struct e2e whole, *const e = &whole;
	long log_at = 0;
	*state = e;
	e2e_open(e, CONFIG, 2);
	e2e_gate_at(e, 0);
	e2e_start_gated_workers(e, 2);
	restart_with(e, "rounds = 9\n", "rounds = 9000\n");
	expect_not_followed(e, &log_at);
	restart_with(e, "rounds = 9000\n", "rounds = 9\n");
	e2e_open_gate(e);
	process_assert_exit(&e->workers[0], 0); /* what was agreed to is done */
	process_assert_exit(&e->workers[1], 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(more_than_is_allowed_spends_no_invite, e2e_teardown),
		cmocka_unit_test_teardown(a_cache_below_a_short_text_is_refused, e2e_teardown),
		cmocka_unit_test_teardown(what_is_asked_later_is_not_followed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
