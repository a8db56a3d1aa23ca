/* test_e2e_settings.c: a volunteer's story: what is said once holds after Ctrl-C and the restart
 * that the program itself proposes; what goes wrong costs no place; the last words of a run that is
 * done say so. */
#include "e2e.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char alone[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 1\n"
							"min-workers = 1\nsteps-per-round = 2\nrounds = 100000\nsnapshot-every = 4\n" E2E_PATIENT;
static const char short_pair[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\n"
								 "min-workers = 2\nsteps-per-round = 2\nrounds = 5\nsnapshot-every = 4\n" E2E_PATIENT;

enum { MBIT_BYTES_PER_S = 125000 };

static void in_worker_dir(const struct e2e *e, int i, const char *name, char out[E2E_PATH + 32]) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, i, dir);
	snprintf(out, E2E_PATH + 32, "%s/%s", dir, name);
}

/* As the README says it: a link, a directory, a text, a cap. */
static void open_with_a_cap(struct e2e *e, const char *config) {
	e2e_open(e, config, 2);
	e->says_little = true;
	e->worker_args[0] = "--data";
	e->worker_args[1] = e->data;
	e->worker_args[2] = "--max-up";
	e->worker_args[3] = "1mbit";
	e->worker_args[4] = "--listen";
	e->worker_args[5] = "127.0.0.1:0";
}

/* From now on as `rivulet-worker --dir w`. */
static void say_only(struct e2e *e, const char *option) {
	memset(e->worker_args, 0, sizeof e->worker_args);
	e->worker_args[0] = option;
}

static void interrupt(struct e2e *e, int i) {
	process_signal(&e->workers[i], SIGINT);
	process_assert_exit(&e->workers[i], 0);
}

static void assert_started_with_cap(struct e2e *e, int64_t bytes_per_s, long *from) {
	json_t *j = e2e_wait_event(&e->workers[0], "started", NULL, 0, from);
	assert_int_equal(e2e_int(j, "max_up_bytes_per_s"), bytes_per_s);
	json_decref(j);
}

static void a_cap_survives_the_restart_that_the_program_proposes(void **state) {
	static struct e2e e;
	long from = 0;
	*state = &e;
	open_with_a_cap(&e, alone);
	e2e_start_worker(&e, 0, NULL, NULL);
	assert_started_with_cap(&e, MBIT_BYTES_PER_S, &from);
	interrupt(&e, 0);
	json_t *j = e2e_wait_event(&e.workers[0], "stopped", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(j, "text"), "rivulet-worker --dir"));
	json_decref(j);
	say_only(&e, NULL);
	e2e_start_worker(&e, 0, NULL, NULL);
	j = e2e_wait_event(&e.workers[0], "kept", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(j, "options"), "max-up = 1mbit"));
	json_decref(j);
	assert_started_with_cap(&e, MBIT_BYTES_PER_S, &from);
	interrupt(&e, 0);
	say_only(&e, "--max-up=unlimited");
	e2e_start_worker(&e, 0, NULL, NULL);
	assert_started_with_cap(&e, 0, &from);
	interrupt(&e, 0);
	say_only(&e, NULL);
	e2e_start_worker(&e, 0, NULL, NULL);
	assert_started_with_cap(&e, 0, &from);
}

static void settings_that_are_damaged_stop_the_start(void **state) {
	static struct e2e e;
	char path[E2E_PATH + 32];
	*state = &e;
	open_with_a_cap(&e, alone);
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, NULL));
	interrupt(&e, 0);
	in_worker_dir(&e, 0, "worker.conf", path);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	say_only(&e, NULL);
	e2e_launch_worker(&e, 0);
	process_assert_exit(&e.workers[0], 2);
}

/* Limits that the run cannot live with are refused where they are given, and not kept. */
static void a_refused_limit_is_not_kept(void **state) {
	static const char *const refused[] = {"max-memory=1MB", "max-disk=1MB", "shard=7"};
	static struct e2e e;
	char dir[E2E_PATH];
	long from = 0;
	*state = &e;
	open_with_a_cap(&e, alone);
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &from));
	interrupt(&e, 0);
	e2e_worker_dir(&e, 0, dir);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		const char *set[] = {"rivulet-worker", "set", refused[i], "--dir", dir, NULL};
		char option[64];
		assert_in_range(e2e_run(&e, "set", set, -1), 1, 2);
		snprintf(option, sizeof option, "--%s", refused[i]);
		say_only(&e, option);
		e2e_launch_worker(&e, 0);
		assert_in_range(process_wait(&e.workers[0]), 1, 2);
		say_only(&e, NULL);
		e2e_start_worker(&e, 0, NULL, NULL);
		json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &from));
		interrupt(&e, 0);
	}
}

/* Its metrics cannot be written: that shows only when it is a member. */
static void a_failure_after_the_join_keeps_the_place(void **state) {
	static struct e2e e;
	char dir[E2E_PATH], blocked[E2E_PATH + 32];
	long from = 0;
	*state = &e;
	open_with_a_cap(&e, alone);
	e2e_worker_dir(&e, 0, dir);
	in_worker_dir(&e, 0, "metrics.jsonl", blocked);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(mkdir(blocked, 0700), 0);
	e2e_launch_worker(&e, 0);
	process_assert_exit(&e.workers[0], 1);
	json_t *j = e2e_wait_event(&e.workers[0], "place_kept", NULL, 0, &from);
	assert_int_equal(e2e_int(j, "member"), 0);
	json_decref(j);
	assert_int_equal(rmdir(blocked), 0);
	say_only(&e, NULL);
	e2e_start_worker(&e, 0, NULL, NULL);
	assert_started_with_cap(&e, MBIT_BYTES_PER_S, &from);
}

static json_t *last_event(const struct process *p) {
	char line[8192], last[8192] = "";
	FILE *f = fopen(p->log, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (line[0] == '{')
			memcpy(last, line, sizeof last);
	fclose(f);
	json_t *j = json_loads(last, 0, NULL);
	assert_non_null(j);
	return j;
}

/* Whoever ends first: the last words are about the run, not about a peer or a coordinator that has
 * gone. */
static void the_last_words_are_about_the_run(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, short_pair, 2);
	e2e_start_workers(&e, 2);
	json_decref(e2e_wait_event(&e.workers[1], "finished", NULL, 0, NULL));
	(void)kill(e.workers[1].pid, SIGSTOP); /* it may have ended already */
	process_assert_exit(&e.workers[0], 0);
	process_signal(&e.coordinator, SIGKILL);
	process_assert_exit(&e.coordinator, 128 + SIGKILL);
	(void)kill(e.workers[1].pid, SIGCONT);
	process_assert_exit(&e.workers[1], 0);
	for (int i = 0; i < 2; i++) {
		long from = 0;
		json_decref(e2e_wait_event(&e.workers[i], "finished", NULL, 0, &from));
		assert_null(e2e_find_event(e.workers[i].log, "peer_refused", NULL, 0, &from));
		json_t *j = last_event(&e.workers[i]);
		assert_string_equal(e2e_text(j, "event"), "done");
		assert_int_equal(e2e_int(j, "given_rounds"), 5);
		assert_int_equal(e2e_int(j, "given_tokens"), 5 * 2 * 2 * 32);
		assert_non_null(strstr(e2e_text(j, "text"), "model.safetensors"));
		json_decref(j);
	}
}

/* The last words count what the process before gave, too. */
static void totals_count_over_restarts(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, short_pair, 2);
	e2e_gate_at(&e, 3);
	e2e_start_gated_workers(&e, 2);
	for (long from = 0;;) {
		json_t *j = e2e_wait_event(&e.workers[0], "round", NULL, 0, &from);
		const bool third = e2e_int(j, "round") == 3;
		json_decref(j);
		if (third)
			break;
	}
	process_signal(&e.workers[0], SIGINT);
	e2e_open_gate(&e);
	process_assert_exit(&e.workers[0], 0);
	e2e_start_worker(&e, 0, NULL, NULL);
	for (int i = 0; i < 2; i++)
		process_assert_exit(&e.workers[i], 0);
	json_t *j = last_event(&e.workers[0]);
	assert_string_equal(e2e_text(j, "event"), "done");
	assert_in_range(e2e_int(j, "given_rounds"), 4, 5); /* a round that it had ended as it stopped may be missing */
	json_decref(j);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_cap_survives_the_restart_that_the_program_proposes, e2e_teardown),
		cmocka_unit_test_teardown(totals_count_over_restarts, e2e_teardown),
		cmocka_unit_test_teardown(a_refused_limit_is_not_kept, e2e_teardown),
		cmocka_unit_test_teardown(settings_that_are_damaged_stop_the_start, e2e_teardown),
		cmocka_unit_test_teardown(a_failure_after_the_join_keeps_the_place, e2e_teardown),
		cmocka_unit_test_teardown(the_last_words_are_about_the_run, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
