/* ends.c: see ends.h. */
#include "ends.h"
#include "tests/common/check.h"

#include <stdio.h>

void e2e_assert_same_end(struct e2e *e, const int *workers, int n, char chain[65], char state[65]) {
	for (int k = 0; k < n; k++) {
		char dir[E2E_PATH];
		process_assert_exit(&e->workers[workers[k]], 0);
		e2e_worker_dir(e, workers[k], dir);
		json_t *end = e2e_metrics(dir, "end");
		if (k == 0) {
			snprintf(chain, 65, "%s", e2e_text(end, "chain"));
			snprintf(state, 65, "%s", e2e_text(end, "state"));
		}
		assert_string_equal(e2e_text(end, "chain"), chain);
		assert_string_equal(e2e_text(end, "state"), state);
		json_decref(end);
	}
}

void e2e_lab_end(struct e2e *e, int workers, char chain[65], char state[65]) {
	char out[E2E_PATH], conf[E2E_PATH], count[16];
	e2e_path(e, "lab", out);
	e2e_path(e, "run.conf", conf);
	snprintf(count, sizeof count, "%d", workers);
	json_t *started = e2e_wait_event(&e->workers[0], "started", NULL, 0, NULL);
	/* Held-out losses, which nobody reads here, would take longer than all else. */
	const char *const argv[] = {
		"rivulet",   "train", "--config",     conf, "--data",        e->data,
		"--workers", count,   "--out",        out,  "--run-hash",    e2e_text(started, "run_hash"),
		"--threads", "1",     "--eval-every", "0",  "--eval-tokens", "64",
		NULL};
	e2e_run(e, "lab", argv, 0);
	json_decref(started);
	json_t *end = e2e_metrics(out, "end");
	snprintf(chain, 65, "%s", e2e_text(end, "chain"));
	snprintf(state, 65, "%s", e2e_text(end, "state"));
	json_decref(end);
}

void e2e_assert_labs_end(struct e2e *e, int workers, char chain[65], char state[65]) {
	char lab_chain[65], lab_state[65];
	int set[E2E_MAX_WORKERS];
	for (int i = 0; i < workers; i++)
		set[i] = i;
	e2e_assert_same_end(e, set, workers, chain, state);
	e2e_lab_end(e, workers, lab_chain, lab_state);
	assert_string_equal(chain, lab_chain);
	assert_string_equal(state, lab_state);
}

void e2e_replay(struct e2e *e, int n, const char *log, int status) {
	char dirs[E2E_MAX_WORKERS][E2E_PATH];
	const char *argv[E2E_MAX_WORKERS + 5] = {"rivulet", "replay", "--data", e->data};
	for (int i = 0; i < n; i++) {
		e2e_worker_dir(e, i, dirs[i]);
		argv[4 + i] = dirs[i];
	}
	argv[4 + n] = NULL;
	e2e_run(e, log, argv, status);
}

void e2e_assert_replayed(struct e2e *e, int n, const char *chain, const char *state) {
	char log[E2E_PATH + 16];
	e2e_replay(e, n, "replay", 0);
	snprintf(log, sizeof log, "%s/replay.log", e->dir);
	json_t *event = e2e_find_event(log, "replayed", NULL, 0, NULL);
	assert_non_null(event);
	assert_string_equal(e2e_text(event, "chain"), chain);
	assert_string_equal(e2e_text(event, "state"), state);
	json_decref(event);
}

void e2e_assert_lab_and_replay(struct e2e *e, int workers) {
	char chain[65], state[65];
	e2e_assert_labs_end(e, workers, chain, state);
	e2e_assert_replayed(e, workers, chain, state);
}

void e2e_check_run(struct e2e *e, const char *config, int workers) {
	e2e_open(e, config, workers);
	e2e_start_workers(e, workers);
	e2e_assert_lab_and_replay(e, workers);
}
