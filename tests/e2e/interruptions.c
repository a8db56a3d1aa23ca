/* interruptions.c: see interruptions.h. */
#include "interruptions.h"
#include "rounds.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Rounds that worker 0 may see in one life: where its storage thread comes to a point late, the run
 * waits for that. */
enum { ROUNDS_OF_A_LIFE = 8 };

static long count_lines(const char *path) {
	FILE *f = fopen(path, "rb");
	long n = 0;
	for (int c; f != NULL && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f != NULL)
		(void)fclose(f);
	return n;
}

/* Returns the round of worker 0 by its log from line `from` on; -1: it has not started yet. */
static int64_t round_since(const struct e2e *e, long from) {
	int64_t round = -1;
	json_t *j = e2e_find_event(e->workers[0].log, "started", NULL, 0, &from);
	if (j != NULL)
		round = e2e_int(j, "round");
	json_decref(j);
	while (round >= 0 && (j = e2e_find_event(e->workers[0].log, "round", NULL, 0, &from)) != NULL) {
		round = e2e_int(j, "round");
		json_decref(j);
	}
	return round;
}

/* Returns true once worker 0, whose life begins at line `from` of its log, is where others are. */
static bool is_level(const struct e2e *e, long from, int64_t others) {
	return round_since(e, from) >= others;
}

/* Moves the gate when worker 0 is where the others are; returns when it has ended. On a slow
 * machine the others may be at the gate before it is there: then no round would be left for it to
 * come to its failpoint. Where it followed those rounds without a part in them, or its disk is
 * late, it gets more, a few each second. */
static void give_it_rounds(struct e2e *e, long from) {
	enum { MORE = 2 };
	int64_t gate = -1;
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "a worker's death"); !process_has_ended(&e->workers[0]);
		 deadline_pause(&d)) {
		const int64_t others = e2e_latest_round(e, 1);
		if (gate >= 0 && others + 1 >= gate)
			(void)sleep(1);
		if (!is_level(e, from, others) || others + 1 < gate)
			continue;
		gate = others + (gate < 0 ? ROUNDS_OF_A_LIFE : MORE);
		e2e_gate_at(e, gate);
	}
}

void e2e_die_often(struct e2e *e, const char *const *failpoints, size_t n) {
	for (size_t i = 0; i < n; i++) {
		char env[96];
		const long from = i > 0 ? count_lines(e->workers[0].log) : 0;
		snprintf(env, sizeof env, "RIVULET_FAILPOINT=%s=kill", failpoints[i]);
		e2e_gate_at(e, e2e_latest_round(e, 1) + ROUNDS_OF_A_LIFE);
		e2e_start_worker(e, 0, "rivulet-worker-failpoint", env);
		for (int k = 1; i == 0 && k < e->n_workers; k++)
			e2e_start_worker(e, k, E2E_GATED, NULL);
		give_it_rounds(e, from);
		if (process_wait(&e->workers[0]) != 128 + SIGKILL)
			fail_msg("not killed at %s", failpoints[i]);
	}
	e2e_open_gate(e);
	e2e_start_worker(e, 0, NULL, NULL);
}

void e2e_die_without_loss(struct e2e *e) {
	static const char *const deaths[] = {"log.begin@1",    "train.step@1",  "log.renamed@2", "train.step@2",
										 "vote.before@2",  "vote.after@1",  "commit.seen@1", "commit.seen@2",
										 "apply.before@2", "apply.after@1", "apply.after@3", "encode.before@2",
										 "encode.after@2"};
	e2e_die_often(e, deaths, sizeof deaths / sizeof deaths[0]);
}

void e2e_die_anywhere(struct e2e *e) {
	static const char *const deaths[] = {"train.step@6",      "train.step@7",     "replica.begin@1",
										 "replica.renamed@2", "snapshot.begin@1", "snapshot.renamed@1",
										 "ready.after@2",     "reduce.start@2",   "reduce.done@1",
										 "persist.before@2",  "prune.after@1"};
	e2e_die_often(e, deaths, sizeof deaths / sizeof deaths[0]);
}

void e2e_stop_and_start(struct e2e *e, int64_t every, int times) {
	long from = 0;
	e2e_gate_at(e, every + ROUNDS_OF_A_LIFE);
	e2e_start_worker(e, 0, NULL, NULL);
	e2e_start_worker(e, 1, E2E_GATED, NULL);
	for (int64_t round = every; round <= every * times; round += every) {
		json_decref(e2e_wait_event(&e->workers[0], "started", NULL, 0, &from)); /* before, a signal is its death */
		json_decref(e2e_wait_event(&e->workers[1], "round", "round", round, NULL));
		process_signal(&e->workers[0], SIGTERM);
		process_assert_exit(&e->workers[0], 0);
		e2e_gate_at(e, round + every + ROUNDS_OF_A_LIFE);
		e2e_launch_worker(e, 0);
	}
	e2e_open_gate(e);
}
