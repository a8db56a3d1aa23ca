/* test_e2e_rollback.c: committed rounds that are on nobody's disk any more: the run says so and
 * holds; the operator takes them back; it goes on and ends in the same bits for all. Also under a
 * coordinator that was restored from an old copy. */
#include "ends.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 3, TOKENS_PER_ROUND = 4 * 2 * 32 * N };

/* No snapshot before the end: every round's log is kept, so that a test can choose what a disk
 * proves. */
static const char slow_enough[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
								  "min-workers = 3\nsteps-per-round = 4\nrounds = 24\nsnapshot-every = 64\n"
								  "grace-ms = 60000\nsilence-ms = 3000\n";
/* A snapshot every other round: of early rounds nothing is left. */
static const char snapshots_often[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
									  "min-workers = 3\nsteps-per-round = 4\nrounds = 100000\nsnapshot-every = 2\n"
									  "grace-ms = 60000\nsilence-ms = 3000\n";
static const int everybody[] = {0, 1, 2};

/* Starts all, gated, and waits until worker 0 has seen this round: some rounds later they stop. */
static void run_to(struct e2e *e, int64_t round) {
	e2e_gate_at(e, round + 4);
	if (e->workers[0].pid == 0)
		e2e_start_gated_workers(e, N);
	json_decref(e2e_wait_event(&e->workers[0], "round", "round", round, NULL));
}

static void kill_all(struct e2e *e) {
	for (int i = 0; i < N; i++) {
		process_signal(&e->workers[i], SIGKILL);
		process_assert_exit(&e->workers[i], 128 + SIGKILL);
	}
	process_signal(&e->coordinator, SIGKILL);
	process_assert_exit(&e->coordinator, 128 + SIGKILL);
	e2e_open_gate(e);
}

/* The disk of worker i forgets every state after `round`. */
static void forget_after(struct e2e *e, int i, uint64_t round) {
	char dir[E2E_PATH], path[2 * E2E_PATH + 8];
	e2e_worker_dir(e, i, dir);
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *f; (f = readdir(d));) {
		bool log = strncmp(f->d_name, "log-", 4) == 0 && strtoull(f->d_name + 4, NULL, 10) >= round;
		bool snapshot = strncmp(f->d_name, "snapshot-", 9) == 0 && strtoull(f->d_name + 9, NULL, 10) > round;
		if (!log && !snapshot && strcmp(f->d_name, "replica.rvp") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
		assert_int_equal(unlink(path), 0);
	}
	closedir(d);
}

static void coordinator_dir(const struct e2e *e, char out[E2E_PATH + 16]) {
	snprintf(out, E2E_PATH + 16, "%s/coordinator", e->dir);
}

static void read_file(const char *path, char *out, size_t cap) {
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	out[fread(out, 1, cap - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
}

/* Again where the coordinator was just deciding something else, and, where `status` is 0, until it
 * is taken: a member that a busy machine kept from reporting for some seconds counts as absent.
 * `status` -1: any. */
static void roll_back(struct e2e *e, const char *to_round, bool force, int status) {
	char dir[E2E_PATH + 16], log[E2E_PATH + 16], said[4096] = "try again";
	int ended = 1;
	coordinator_dir(e, dir);
	snprintf(log, sizeof log, "%s/rollback.log", e->dir);
	const char *const argv[] = {"rivulet-coordinator",    "rollback", "--dir", dir, "--to-round", to_round,
								force ? "--force" : NULL, NULL};
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "the end of another decision");
		 (strstr(said, "try again") || (status == 0 && ended != 0)) && !deadline_is_over(&d);) {
		(void)remove(log);
		ended = e2e_run(e, "rollback", argv, -1);
		read_file(log, said, sizeof said);
	}
	if (status >= 0 && ended != status)
		fail_msg("the rollback ended with %d: %s", ended, said);
}

/* An event of the coordinator whose text says so. */
static void expect_told(struct e2e *e, const char *name, const char *text) {
	bool said = false;
	for (long from = 0; !said;) {
		json_t *told = e2e_wait_event(&e->coordinator, name, NULL, 0, &from);
		said = strstr(e2e_text(told, "text"), text) != NULL;
		json_decref(told);
	}
}

static void a_round_that_is_on_no_disk_any_more(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, slow_enough, N + 1);
	run_to(&e, 8);
	kill_all(&e);
	forget_after(&e, 0, 3);
	forget_after(&e, 1, 5);
	forget_after(&e, 2, 2);
	e2e_start_coordinator(&e);
	e2e_start_workers(&e, N);
	expect_told(&e, "state_lost", "came back without it");
	/* Worker 1 has log 4, but nothing after it says that round 4 was committed: the document
	 * does. */
	expect_told(&e, "rollback_possible", "--to-round 5");
	roll_back(&e, "7", false, 1);
	roll_back(&e, "5", false, 0);
	for (int i = 0; i < N; i++)
		json_decref(e2e_wait_event(&e.workers[i], "rollback", "to_round", 5, NULL));
	expect_told(&e, "rollback", "from the state of round 5 (term 1)");
	e2e_assert_same_end(&e, everybody, N, chain, full);
}

/* One of those who held the round is merely switched off: nothing is lost, the run waits for it. */
static void a_holder_comes_back(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, slow_enough, N);
	run_to(&e, 6);
	kill_all(&e);
	forget_after(&e, 0, 3);
	forget_after(&e, 1, 4);
	e2e_start_coordinator(&e);
	e2e_start_worker(&e, 0, NULL, NULL);
	e2e_start_worker(&e, 1, NULL, NULL);
	expect_told(&e, "state_absent", "held last by members 0");
	expect_told(&e, "state_absent", ", 2 (absent)");
	roll_back(&e, "4", false, 1);
	e2e_start_worker(&e, 2, NULL, NULL);
	e2e_assert_same_end(&e, everybody, N, chain, full);
	char dir[E2E_PATH];
	e2e_worker_dir(&e, 2, dir);
	json_t *round = e2e_find_event(e.workers[0].log, "rollback", NULL, 0, NULL);
	assert_null(round);
}

static void path_in_the_way(const struct e2e *e, int i, char out[2 * E2E_PATH]) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, i, dir);
	snprintf(out, 2 * E2E_PATH, "%s/given-up-0", dir);
}

/* What is given up cannot be set aside. */
static void put_in_the_way(const struct e2e *e, int i) {
	char path[2 * E2E_PATH];
	path_in_the_way(e, i, path);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
}

/* The worker ends, and says why; when it starts again it knows nothing of the new term, and does it
 * all again. */
static void expect_to_be_in_the_way(struct e2e *e, int i) {
	char path[2 * E2E_PATH];
	path_in_the_way(e, i, path);
	assert_int_not_equal(process_wait(&e->workers[i]), 0);
	json_t *failed = e2e_wait_event(&e->workers[i], "failed", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(failed, "text"), path));
	json_decref(failed);
	assert_int_equal(unlink(path), 0);
	e2e_start_worker(e, i, NULL, NULL);
}

static int64_t coordinators_round(struct e2e *e) {
	json_t *status = e2e_status(e);
	int64_t round = e2e_int(status, "round");
	json_decref(status);
	return round;
}

/* A copy of the coordinator's directory from before is restored under workers that are ahead of
 * it. */
static void an_old_copy_is_restored(void **state) {
	static struct e2e e;
	char chain[65], full[65], dir[E2E_PATH + 16], file[E2E_PATH + 16];
	*state = &e;
	e2e_open(&e, slow_enough, N);
	coordinator_dir(&e, dir);
	snprintf(file, sizeof file, "%s/run.backup", e.dir);
	run_to(&e, 4);
	e2e_run(&e, "backup", (const char *const[]){"rivulet-coordinator", "backup", "--dir", dir, file, NULL}, 0);
	run_to(&e, 12);
	process_signal(&e.coordinator, SIGTERM);
	process_assert_exit(&e.coordinator, 0);
	e2e_run(&e, "restore", (const char *const[]){"rivulet-coordinator", "restore", "--dir", dir, file, NULL}, 1);
	e2e_run(&e, "restore", (const char *const[]){"rivulet-coordinator", "restore", "--dir", dir, "--force", file, NULL},
			0);
	e2e_start_coordinator(&e);
	json_t *ahead = e2e_wait_event(&e.coordinator, "ahead", NULL, 0, NULL);
	json_decref(ahead);
	json_t *old = e2e_wait_event(&e.workers[0], "old_store", NULL, 0, NULL); /* refused: an earlier round */
	assert_non_null(strstr(e2e_text(old, "text"), "has an old copy of the run: document "));
	assert_non_null(strstr(e2e_text(old, "text"), "Nothing is lost"));
	json_decref(old);
	char to_round[24];
	snprintf(to_round, sizeof to_round, "%lld", (long long)coordinators_round(&e));
	put_in_the_way(&e, 0);
	roll_back(&e, to_round, true, 0);
	e2e_gate_at(&e, 20); /* who waits there comes to the end of its step, and follows */
	expect_to_be_in_the_way(&e, 0);
	for (int i = 0; i < N; i++)
		json_decref(e2e_wait_event(&e.workers[i], "rollback", "term", 1, NULL));
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, everybody, N, chain, full);
}

static void serve_backup(struct e2e *e, const char *name) {
	char dir[E2E_PATH + 16], file[E2E_PATH + 16];
	coordinator_dir(e, dir);
	snprintf(file, sizeof file, "%s/%s", e->dir, name);
	e2e_run(e, "restore", (const char *const[]){"rivulet-coordinator", "restore", "--dir", dir, "--force", file, NULL},
			0);
	e2e_start_coordinator(e);
}

static void backup_and_restore(struct e2e *e, int64_t copied_at, int64_t ends_at) {
	char dir[E2E_PATH + 16], file[E2E_PATH + 16], newest[E2E_PATH + 16];
	coordinator_dir(e, dir);
	snprintf(file, sizeof file, "%s/run.backup", e->dir);
	run_to(e, copied_at);
	e2e_run(e, "backup", (const char *const[]){"rivulet-coordinator", "backup", "--dir", dir, file, NULL}, 0);
	run_to(e, ends_at);
	process_signal(&e->coordinator, SIGTERM);
	process_assert_exit(&e->coordinator, 0);
	snprintf(newest, sizeof newest, "%s/newest.backup", e->dir);
	e2e_run(e, "backup", (const char *const[]){"rivulet-coordinator", "backup", "--dir", dir, newest, NULL}, 0);
	serve_backup(e, "run.backup");
	json_decref(e2e_wait_event(&e->coordinator, "ahead", NULL, 0, NULL));
}

/* Snapshots and log entries go where they were. */
static void take_back(const struct e2e *e, int i) {
	char dir[E2E_PATH], set[E2E_PATH + 16], from[2 * E2E_PATH + 32], to[2 * E2E_PATH + 32];
	e2e_worker_dir(e, i, dir);
	snprintf(set, sizeof set, "%s/given-up-0", dir);
	DIR *d = opendir(set);
	assert_non_null(d);
	for (struct dirent *f; (f = readdir(d));) {
		if (strncmp(f->d_name, "log-", 4) != 0 && strncmp(f->d_name, "snapshot-", 9) != 0)
			continue;
		snprintf(from, sizeof from, "%s/%.24s", set, f->d_name);
		snprintf(to, sizeof to, "%s/%.24s", dir, f->d_name);
		assert_int_equal(rename(from, to), 0);
	}
	closedir(d);
}

/* As docs/files.md says: the newest store, the files that were set aside, and a later term. */
static void bring_it_back(struct e2e *e) {
	char to_round[24];
	long from[N] = {0};
	json_t *followed = NULL;
	kill_all(e);
	for (int i = 0; i < N; i++)
		take_back(e, i);
	serve_backup(e, "newest.backup");
	int64_t round = coordinators_round(e);
	assert_true(round >= 15);
	e2e_start_workers(e, N);
	snprintf(to_round, sizeof to_round, "%lld", (long long)round);
	for (int tries = 0; !followed && tries < 300; tries++) { /* refused until one who is ahead has reported */
		roll_back(e, to_round, true, -1);
		(void)usleep(100000);
		followed = e2e_find_event(e->workers[0].log, "rollback", "term", 2, NULL);
	}
	assert_non_null(followed);
	json_decref(followed);
	for (int i = 0; i < N; i++) {
		json_decref(e2e_wait_event(&e->workers[i], "rollback", "term", 2, &from[i]));
		json_decref(e2e_wait_event(&e->workers[i], "round", "round", round + 2, &from[i]));
	}
}

/* The copy is so old that no disk proves its round: nothing of what was trained since is lost for
 * that. */
static void no_disk_goes_back_as_far_as_the_copy(void **state) {
	static struct e2e e;
	char to_round[24], out[E2E_PATH + 16];
	*state = &e;
	e2e_open(&e, snapshots_often, N);
	backup_and_restore(&e, 2, 16);
	snprintf(to_round, sizeof to_round, "%lld", (long long)coordinators_round(&e));
	expect_told(&e, "old_copy", "serve the newest store");
	assert_null(e2e_find_event(e.coordinator.log, "rollback_possible", NULL, 0, NULL));
	roll_back(&e, to_round, false, 1);
	roll_back(&e, to_round, true, 0);
	e2e_gate_at(&e, 40);
	for (int i = 0; i < N; i++) {
		json_t *told = e2e_wait_event(&e.workers[i], "given_up", NULL, 0, NULL);
		const char *set = e2e_text(told, "dir");
		assert_non_null(strstr(set, "/given-up-0"));
		e2e_run(&e, "list", (const char *const[]){"rivulet", "checkpoint", "list", set, NULL}, 0);
		e2e_run(&e, "verify", (const char *const[]){"rivulet", "checkpoint", "verify", set, NULL}, 0);
		snprintf(out, sizeof out, "%s/hf-%d", e.dir, i);
		e2e_run(&e, "export", (const char *const[]){"rivulet", "export", set, "--out", out, NULL}, 0);
		json_decref(told);
	}
	bring_it_back(&e);
}

static int64_t metric(struct e2e *e, int i, const char *kind, const char *key) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, i, dir);
	json_t *line = e2e_metrics(dir, kind);
	int64_t value = e2e_int(line, key);
	json_decref(line);
	return value;
}

static void expect_no_replay(struct e2e *e) {
	char dirs[N][E2E_PATH], log[E2E_PATH + 16];
	for (int i = 0; i < N; i++)
		e2e_worker_dir(e, i, dirs[i]);
	snprintf(log, sizeof log, "%s/replay.log", e->dir);
	const char *const argv[] = {"rivulet", "replay", "--data", e->data, dirs[0], dirs[1], dirs[2], NULL};
	e2e_run(e, "replay", argv, 1);
	char text[4096];
	read_file(log, text, sizeof text);
	assert_non_null(strstr(text, "rolled the run back to round 20"));
}

/* One that was about to exit when it went on may be gone before it hears of it: then it follows
 * when it is started again. */
static void wait_for_rollback(struct e2e *e, int i) {
	json_t *found = NULL;
	for (int tries = 0; !found && tries < 2000; tries++) {
		found = e2e_find_event(e->workers[i].log, "rollback", "to_round", 20, NULL);
		if (!found && process_has_ended(&e->workers[i])) {
			process_assert_exit(&e->workers[i], 0);
			e2e_start_worker(e, i, NULL, NULL);
		}
		(void)usleep(50000);
	}
	assert_non_null(found);
	json_decref(found);
}

/* One is about to write its weights, one has just written them, one has gone: all follow, and
 * nothing of the end that was taken back counts. */
static void who_has_finished_follows(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, slow_enough, N);
	e2e_start_worker(&e, 0, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=export.before=stop");
	e2e_start_worker(&e, 1, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=export.after=stop");
	e2e_start_worker(&e, 2, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "failpoint", NULL, 0, NULL));
	json_decref(e2e_wait_event(&e.workers[1], "failpoint", NULL, 0, NULL));
	process_assert_exit(&e.workers[2], 0);
	roll_back(&e, "20", true, 0);
	process_signal(&e.workers[0], SIGCONT);
	process_signal(&e.workers[1], SIGCONT);
	e2e_start_worker(&e, 2, NULL, NULL);
	for (int i = 0; i < N; i++)
		wait_for_rollback(&e, i);
	e2e_assert_same_end(&e, everybody, N, chain, full);
	for (int i = 0; i < N; i++) {
		assert_int_equal(metric(&e, i, "rollback", "from_round"), 24);
		assert_int_equal(metric(&e, i, "rollback", "tokens"), 20 * TOKENS_PER_ROUND);
		assert_int_equal(metric(&e, i, "end", "tokens"), 24 * TOKENS_PER_ROUND);
		assert_true(metric(&e, i, "end", "formula_bytes") > metric(&e, i, "rollback", "formula_bytes"));
	}
	expect_no_replay(&e);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_round_that_is_on_no_disk_any_more, e2e_teardown),
		cmocka_unit_test_teardown(a_holder_comes_back, e2e_teardown),
		cmocka_unit_test_teardown(an_old_copy_is_restored, e2e_teardown),
		cmocka_unit_test_teardown(no_disk_goes_back_as_far_as_the_copy, e2e_teardown),
		cmocka_unit_test_teardown(who_has_finished_follows, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
