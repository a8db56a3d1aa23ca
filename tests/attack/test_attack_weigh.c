/* test_attack_weigh.c: `rivulet-worker weigh`: one of four workers sends the opposite of its outer
 * gradient, four times as large, in a run that does not limit it: a worker's own measurement says
 * so of it, of an honest one not, and leaves the worker's training as it is. Real processes on
 * loopback. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/e2e/ends.h"
#include "tests/e2e/rounds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 4, EVIL = 3, WINDOW = 4, ROUND = 6, FAILED = 1 };

#define AUDITED "audit-chunks = 1\naudit-window = 6\n"
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 4\nmin-workers = 3\nsteps-per-round = 8\n"            \
	"warmup-steps = 10\nlr = 0.003\n" E2E_STEADY

/* Has worker 0 weigh a member; its log is `name`.log, which `out` becomes the path of. */
static int weigh(struct e2e *e, const char *name, const char *member, const char *rounds, int status,
				 char out[E2E_PATH]) {
	char dir[E2E_PATH], file[64];
	e2e_worker_dir(e, 0, dir);
	(void)snprintf(file, sizeof file, "%s.log", name);
	e2e_path(e, file, out);
	const char *argv[] = {"rivulet-worker", "weigh", member, "--dir", dir, "--json", "--rounds", rounds, NULL};
	return e2e_run(e, name, argv, status);
}

/* Returns the result, which follows the events. */
static json_t *result_of(const char *log) {
	char *text = scratch_read(log, NULL);
	const char *at = strstr(text, "{\n");
	json_t *o = at ? json_loads(at, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	free(text);
	assert_non_null(o);
	return o;
}

/* Weighs a member by the last n rounds; returns in how many it is better without it. */
static int rounds_better_without(struct e2e *e, const char *member, int n) {
	char log[E2E_PATH], name[32], count[16];
	int without = 0;
	(void)snprintf(name, sizeof name, "weigh-%s", member);
	(void)snprintf(count, sizeof count, "%d", n);
	(void)weigh(e, name, member, count, 0, log);
	json_t *o = result_of(log);
	const json_t *rounds = json_object_get(o, "rounds");
	assert_int_equal(json_array_size(rounds), n);
	for (int i = 0; i < n; i++) {
		const json_t *r = json_array_get(rounds, (size_t)i);
		const double with = json_number_value(json_object_get(r, "with"));
		assert_int_equal(e2e_int(r, "round"), ROUND - n + i);
		assert_true(e2e_int(r, "sequences") >= 100);
		print_message("member %s, round %d: %.4f with, %.4f without, %+.4f +- %.4f: %s\n", member,
					  (int)e2e_int(r, "round"), with, json_number_value(json_object_get(r, "without")),
					  json_number_value(json_object_get(r, "difference")),
					  json_number_value(json_object_get(r, "error")), e2e_text(r, "verdict"));
		without += strcmp(e2e_text(r, "verdict"), "better without") == 0;
	}
	json_decref(o);
	return without;
}

static void assert_says(const char *log, const char *text) {
	char said[4096] = "";
	FILE *f = fopen(log, "re");
	assert_non_null(f);
	said[fread(said, 1, sizeof said - 1, f)] = '\0';
	(void)fclose(f);
	if (strstr(said, text) == NULL)
		fail_msg("%s, must say: %s", said, text);
}

/* Starts the workers: all but the first stop at the gate, at the begin of ROUND. */
static void start(struct e2e *e, const char *more, int workers, const char *evil) {
	char config[1024];
	(void)snprintf(config, sizeof config, "%sdata-shards = %d\n%s", RUN, workers, more);
	e2e_open(e, config, workers);
	e2e_gate_at(e, 0);
	e2e_start_worker(e, 0, NULL, NULL);
	for (int i = 1; i < workers; i++)
		e2e_start_worker(e, i, i == EVIL ? "rivulet-worker-evil" : E2E_GATED, i == EVIL ? evil : NULL);
	e2e_wait_level(e, workers);
	e2e_gate_at(e, ROUND);
	e2e_wait_for_round(e, (const int[]){0}, 1, ROUND);
}

/* Waits until it fetches contributions, which comes after it has looked for the rounds. */
static void wait_fetching(const struct process *asks) {
	long from = 0;
	for (bool fetches = false; !fetches;) {
		json_t *shown = e2e_wait_event(asks, "weighing", NULL, 0, &from);
		fetches = strcmp(e2e_text(shown, "unit"), "chunk") == 0;
		json_decref(shown);
	}
}

/* One member is frozen, so that it waits; then that one is killed. */
static void an_interrupt_ends_it_in_the_worker(struct e2e *e) {
	struct process asks = {0};
	char dir[E2E_PATH];
	process_freeze(&e->workers[2]);
	e2e_worker_dir(e, 0, dir);
	e2e_path(e, "interrupted.log", asks.log);
	process_start(&asks, (const char *[]){"rivulet-worker", "weigh", "3", "--dir", dir, "--rounds", "1", NULL}, NULL);
	wait_fetching(&asks);
	process_signal(&asks, SIGINT);
	assert_int_not_equal(process_wait(&asks), 0);
	json_t *ended = e2e_wait_event(&e->workers[0], "weigh_failed", "member", EVIL, NULL);
	assert_string_equal(e2e_text(ended, "error"), "cancelled");
	json_decref(ended);
	process_kill(&e->workers[2]);
	char log[E2E_PATH];
	e2e_path(e, "stop.log", log);
	(void)e2e_run(e, "stop", (const char *[]){"rivulet-worker", "weigh", "stop", "--dir", dir, NULL}, FAILED);
	assert_says(log, "nothing is being weighed");
}

/* Two more rounds are committed without the dead one. */
static void rounds_of_the_dead_are_left_out(struct e2e *e) {
	char log[E2E_PATH];
	e2e_gate_at(e, ROUND + 2);
	e2e_wait_for_round(e, (const int[]){0}, 1, ROUND + 2);
	(void)weigh(e, "partly", "3", "3", 0, log);
	json_t *o = result_of(log);
	const json_t *rounds = json_object_get(o, "rounds");
	assert_int_equal(json_array_size(rounds), 3);
	assert_string_equal(e2e_text(json_array_get(rounds, 0), "verdict"), "left out");
	assert_non_null(strstr(e2e_text(json_array_get(rounds, 0), "why"), "member 2"));
	for (size_t i = 1; i < 3; i++)
		assert_true(e2e_int(json_array_get(rounds, i), "sequences") >= 100);
	json_decref(o);
}

static void who_harms_is_found(void **state) {
	static struct e2e e;
	char log[E2E_PATH];
	*state = &e;
	start(&e, "rounds = 1000\nmerge = mean\n" AUDITED, WORKERS, "RIVULET_EVIL=scale=-4");
	assert_true(rounds_better_without(&e, "3", WINDOW) > WINDOW / 2);
	assert_true(rounds_better_without(&e, "1", 2) <= 1);
	json_decref(e2e_wait_event(&e.workers[0], "weighed", "member", EVIL, NULL));
	(void)weigh(&e, "stranger", "77", "4", FAILED, log);
	assert_says(log, "member 77 had no part in rounds 3 to 6");
	(void)weigh(&e, "many", "3", "7", FAILED, log);
	assert_says(log, "7 rounds: members keep their contributions to the last 6 (audit-window)");
	an_interrupt_ends_it_in_the_worker(&e);
	(void)weigh(&e, "dead", "3", "2", FAILED, log);
	assert_says(log, "member 2 does not give its contribution to round 5: it is not linked with this worker");
	rounds_of_the_dead_are_left_out(&e);
	(void)weigh(&e, "again", "3", "3", FAILED, log);
	assert_says(log, "members give their contributions to 12 rounds an hour to one that weighs, and 1 are left");
}

/* A run without audits: nobody keeps what was contributed. */
static void nothing_is_weighed_without_audits(void **state) {
	static struct e2e e;
	char log[E2E_PATH];
	*state = &e;
	start(&e, "rounds = 1000\n", 3, NULL);
	(void)weigh(&e, "unkept", "1", "1", FAILED, log);
	assert_says(log, "members of this run keep no contributions, as it audits nothing");
}

/* Measurements between its inner steps, steps ahead too, and at the gate: all end in the lab's
 * bits. */
static void training_keeps_its_bits(void **state) {
	static struct e2e e;
	char chain[65], hash[65], log[E2E_PATH];
	*state = &e;
	start(&e, "rounds = 10\noverlap-steps = 3\nfragments = 2\n" AUDITED, 3, NULL);
	(void)rounds_better_without(&e, "1", 1);
	e2e_open_gate(&e);
	(void)weigh(&e, "meanwhile", "2", "3", -1, log); /* it is done, or cut short by the end */
	e2e_assert_labs_end(&e, 3, chain, hash);
	e2e_assert_replayed(&e, 3, chain, hash);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_is_weighed_without_audits, e2e_teardown),
		cmocka_unit_test_teardown(training_keeps_its_bits, e2e_teardown),
		cmocka_unit_test_teardown(who_harms_is_found, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
