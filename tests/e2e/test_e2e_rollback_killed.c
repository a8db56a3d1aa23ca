/* test_e2e_rollback_killed.c: the operator takes rounds back, and the coordinator is killed at each
 * step of making that durable: it has happened, or it has not, and is done again. Then the workers
 * are killed at each step of following: they follow when they are started again, and all end in the
 * same bits. */
#include "ends.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { N = 3, KILLED = 128 + SIGKILL, TRIES = 100, AHEAD = 3 };

static const char run[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
						  "min-workers = 3\nsteps-per-round = 20\nrounds = 120\nsnapshot-every = 64\n"
						  "grace-ms = 60000\nsilence-ms = 30000\n";
static const int everybody[] = {0, 1, 2};

static void restart_coordinator(struct e2e *e, const char *env) {
	if (e->coordinator.pid > 0) {
		process_signal(&e->coordinator, SIGKILL);
		assert_int_equal(process_wait(&e->coordinator), KILLED);
	}
	e->coordinator_program = "rivulet-coordinator-failpoint";
	e->coordinator_env = env;
	e2e_start_coordinator(e);
}

/* False: the coordinator was in the middle of another decision, and said so. */
static bool roll_back(struct e2e *e, int64_t to_round) {
	char dir[E2E_PATH + 16], log[E2E_PATH + 16], round[24], said[1024] = "";
	snprintf(dir, sizeof dir, "%s/coordinator", e->dir);
	snprintf(log, sizeof log, "%s/rollback.log", e->dir);
	snprintf(round, sizeof round, "%lld", (long long)to_round);
	(void)remove(log);
	e2e_run(
		e, "rollback",
		(const char *const[]){"rivulet-coordinator", "rollback", "--dir", dir, "--to-round", round, "--force", NULL},
		-1);
	FILE *f = fopen(log, "r");
	assert_non_null(f);
	said[fread(said, 1, sizeof said - 1, f)] = '\0';
	fclose(f);
	return !strstr(said, "try again");
}

static void roll_back_when_it_can(struct e2e *e, int64_t to_round) {
	bool done = false;
	for (int tries = 0; !done && tries < TRIES; tries++)
		done = roll_back(e, to_round);
	assert_true(done);
}

static bool has_begun(const struct e2e *e, int64_t term) {
	json_t *told = e2e_find_event(e->workers[0].log, "rollback", "term", term, NULL);
	json_decref(told);
	return told != NULL;
}

/* The first round that worker 0 has entered since line *from of its log; the run goes on for some
 * more, and waits. */
static int64_t next_round(struct e2e *e, long *from) {
	e2e_gate_at(e, e2e_latest_round(e, 0) + AHEAD);
	json_t *j = e2e_wait_event(&e->workers[0], "round", NULL, 0, from);
	int64_t round = e2e_int(j, "round");
	json_decref(j);
	return round;
}

/* Killed at `point`, which comes before the rollback is durable or after. */
static void kill_coordinator_at(struct e2e *e, const char *point, bool is_durable, int64_t term, long *from) {
	char env[96];
	snprintf(env, sizeof env, "RIVULET_FAILPOINT=%s=kill", point);
	restart_coordinator(e, env);
	(void)next_round(e, from);
	int64_t back_to = next_round(e, from) - 1;
	roll_back_when_it_can(e, back_to);
	assert_int_equal(process_wait(&e->coordinator), KILLED);
	assert_false(has_begun(e, term));
	restart_coordinator(e, NULL);
	if (!is_durable)
		roll_back_when_it_can(e, back_to);
	e2e_gate_at(e, back_to + 3 * AHEAD); /* who waits there comes to the end of its step, and follows */
	for (int i = 0; i < N; i++)          /* what worker 0 has said before is of another term */
		json_decref(e2e_wait_event(&e->workers[i], "rollback", "term", term, i == 0 ? from : NULL));
}

/* Each worker dies at another step of following, and follows when it is back. */
static void kill_workers_that_follow(struct e2e *e, long *from) {
	static const char *const points[N] = {"RIVULET_FAILPOINT=rollback.before=kill",
										  "RIVULET_FAILPOINT=rollback.rewound=kill",
										  "RIVULET_FAILPOINT=rollback.stored=kill"};
	(void)next_round(e, from); /* all of them have followed so far */
	for (int i = 0; i < N; i++) {
		process_signal(&e->workers[i], SIGKILL);
		assert_int_equal(process_wait(&e->workers[i]), KILLED);
		e2e_start_worker(e, i, "rivulet-worker-failpoint", points[i]);
	}
	(void)next_round(e, from);
	int64_t back_to = next_round(e, from) - 1;
	roll_back_when_it_can(e, back_to);
	e2e_gate_at(e, back_to + 3 * AHEAD);
	for (int i = 0; i < N; i++) {
		assert_int_equal(process_wait(&e->workers[i]), KILLED);
		e2e_start_worker(e, i, NULL, NULL);
	}
	e2e_open_gate(e);
}

static void killed_at_every_step_of_a_rollback(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	long from = 0;
	*state = &e;
	e2e_open(&e, run, N);
	e2e_gate_at(&e, AHEAD);
	e2e_start_gated_workers(&e, N);
	kill_coordinator_at(&e, "rollback-record.before", false, 1, &from);
	kill_coordinator_at(&e, "rollback-record.written", false, 2, &from);
	kill_coordinator_at(&e, "rollback-record.durable", true, 3, &from);
	kill_coordinator_at(&e, "rollback-record.announced", true, 4, &from);
	kill_workers_that_follow(&e, &from);
	e2e_assert_same_end(&e, everybody, N, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(killed_at_every_step_of_a_rollback, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
