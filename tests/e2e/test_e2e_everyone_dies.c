/* test_e2e_everyone_dies.c: the power goes everywhere at once, and what is on the disks has
 * suffered: a torn replica, a snapshot that is gone, a torn log entry. Everybody starts again, says
 * what it goes on from, and the run ends in one state; `rivulet checkpoint` agrees. */
#include "ends.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKERS = 3 };

static const char run[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
						  "min-workers = 3\nsteps-per-round = 30\nrounds = 12\nsnapshot-every = 2\n" E2E_PATIENT;

/* The round and the path of the newest file that `format` describes. */
static uint64_t newest(const struct e2e *e, int worker, const char *format, char out[2 * E2E_PATH]) {
	char dir[E2E_PATH];
	uint64_t best = 0;
	bool found = false;
	e2e_worker_dir(e, worker, dir);
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *entry; (entry = readdir(d));) {
		uint64_t round;
		int end = 0;
		if (sscanf(entry->d_name, format, &round, &end) != 1 || end == 0 || entry->d_name[end] ||
			(found && round < best))
			continue;
		best = round;
		found = true;
		snprintf(out, 2 * E2E_PATH, "%s/%s", dir, entry->d_name);
	}
	closedir(d);
	assert_true(found);
	return best;
}

/* Waits until every disk has a snapshot of round 4: a slow one has it some rounds late. */
static void wait_for_snapshots(const struct e2e *e) {
	char dir[E2E_PATH], path[2 * E2E_PATH];
	for (int i = 0; i < WORKERS; i++) {
		e2e_worker_dir(e, i, dir);
		snprintf(path, sizeof path, "%s/snapshot-4.rvs", dir);
		for (struct deadline d = deadline_in(PROCESS_WAIT_S, path); access(path, F_OK) != 0;)
			deadline_pause(&d);
	}
}

static void tear(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void kill_everybody(struct e2e *e) {
	process_signal(&e->coordinator, SIGKILL);
	for (int i = 0; i < WORKERS; i++)
		process_signal(&e->workers[i], SIGKILL);
	process_assert_exit(&e->coordinator, 128 + SIGKILL);
	for (int i = 0; i < WORKERS; i++)
		process_assert_exit(&e->workers[i], 128 + SIGKILL);
}

static void damage_everybody(struct e2e *e) {
	char path[2 * E2E_PATH], dir[E2E_PATH];
	e2e_worker_dir(e, 0, dir);
	snprintf(path, sizeof path, "%s/replica.rvp", dir);
	tear(path);
	(void)newest(e, 1, "snapshot-%" SCNu64 ".rvs%n", path);
	assert_int_equal(unlink(path), 0);
	uint64_t log = newest(e, 2, "log-%" SCNu64 ".rvl%n", path);
	tear(path);
	if (newest(e, 2, "snapshot-%" SCNu64 ".rvs%n", path) > log) /* it makes the entry superfluous */
		assert_int_equal(unlink(path), 0);
}

/* After the restart: the log has grown since `from`. */
static void assert_recovered(const struct e2e *e, int worker, bool has_replica, int64_t at_least) {
	long from = 0;
	json_t *first = e2e_wait_event(&e->workers[worker], "recovered", "round", at_least, &from);
	assert_true(json_is_true(json_object_get(first, "snapshot")));
	assert_int_equal(e2e_int(first, "round"), e2e_int(first, "from_round") + e2e_int(first, "log_entries"));
	assert_true((e2e_int(first, "replica_round") >= 0) == has_replica);
	json_decref(first);
}

static void assert_damage_told(const struct e2e *e, int worker, const char *file) {
	json_t *told = e2e_wait_event(&e->workers[worker], "damaged", NULL, 0, NULL);
	if (!strstr(e2e_text(told, "text"), file) || !strstr(e2e_text(told, "text"), ".damaged"))
		fail_msg("%s", e2e_text(told, "text"));
	json_decref(told);
}

static void assert_disks_verify(struct e2e *e) {
	for (int i = 0; i < WORKERS; i++) {
		char dir[E2E_PATH], name[32];
		e2e_worker_dir(e, i, dir);
		snprintf(name, sizeof name, "verify%d", i);
		const char *const verify[] = {"rivulet", "checkpoint", "verify", dir, NULL};
		e2e_run(e, name, verify, 0);
	}
}

static void everyone_dies_and_the_disks_have_suffered(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, run, WORKERS);
	e2e_gate_at(&e, 6); /* two snapshots are kept: those of rounds 4 and 6 */
	e2e_start_gated_workers(&e, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		json_decref(e2e_wait_event(&e.workers[i], "round", "round", 5, NULL));
	wait_for_snapshots(&e);
	kill_everybody(&e);
	e2e_open_gate(&e);
	damage_everybody(&e);
	e2e_start_coordinator(&e);
	for (int i = 0; i < WORKERS; i++)
		e2e_launch_worker(&e, i);
	assert_recovered(&e, 0, false, 4);
	assert_recovered(&e, 1, true, 4);
	assert_recovered(&e, 2, true, 3);
	assert_damage_told(&e, 0, "replica.rvp");
	assert_damage_told(&e, 2, "log-");
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, WORKERS, chain, full);
	assert_disks_verify(&e);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(everyone_dies_and_the_disks_have_suffered, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
