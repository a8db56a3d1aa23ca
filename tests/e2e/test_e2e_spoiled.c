/* test_e2e_spoiled.c: one real worker's own weights are unusable (not finite, too large): nothing
 * of them reaches the others. */
#include "ends.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Nobody is left out, however slow the machine: the run even waits for the one that is wrong. */
static const char run[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
						  "min-workers = 4\nsteps-per-round = 4\nrounds = 17\nsnapshot-every = 4\n" E2E_PATIENT;

/* The faulty one is the third: before it has come there is no round. */
enum { FAULTY = 2, WORKERS = 4 };

/* Nobody waits for the one that trains its round again. */
static const char enough[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							 "min-workers = 3\nsteps-per-round = 4\nrounds = 17\nsnapshot-every = 4\n" E2E_PATIENT;

static int count(const struct process *p, const char *name) {
	int n = 0;
	long from = 0;
	for (json_t *j; (j = e2e_find_event(p->log, name, NULL, 0, &from)); json_decref(j))
		n++;
	return n;
}

/* Steps 8 to 11 are round 2's. Behind its last one the weights are looked at before they are given;
 * before that, no batch has a finite loss any more. The worker and the coordinator say so; the
 * round is trained again when there is `go_on`. */
static void open_faulty(struct e2e *e, const char *config, const char *fault, char go_on[E2E_PATH]) {
	char env[E2E_PATH + 64];
	e2e_open(e, config, WORKERS);
	e2e_path(e, "go-on", go_on);
	(void)snprintf(env, sizeof env, "RIVULET_FAULTY=%s:%s", fault, go_on);
	e2e_start_workers(e, 2);
	e2e_start_worker(e, FAULTY, "rivulet-worker-faulty", env);
	e2e_start_worker(e, 3, NULL, NULL);
	json_t *j = e2e_wait_event(&e->workers[FAULTY], "spoiled", NULL, 0, NULL);
	assert_int_equal(e2e_int(j, "round"), 2);
	assert_non_null(strstr(e2e_text(j, "text"), "h.0.")); /* the tensor */
	json_decref(j);
	j = e2e_wait_event(&e->coordinator, "spoiled", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(j, "text"), "member 2 "));
	json_decref(j);
}

static void assert_nobody_else_suffered(struct e2e *e) {
	char chain[65], full[65];
	e2e_assert_same_end(e, (const int[]){0, 1, FAULTY, 3}, WORKERS, chain, full);
	assert_int_equal(count(&e->workers[FAULTY], "spoiled"), 1);
	assert_int_equal(count(&e->coordinator, "suspected"), 0);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(count(&e->workers[i], "suspects"), 0);
}

static void trains_the_round_again(void **state, const char *fault) {
	static struct e2e e;
	char go_on[E2E_PATH];
	*state = &e;
	open_faulty(&e, run, fault, go_on);
	long from = 0;
	json_t *j = e2e_find_event(e.workers[FAULTY].log, "attempt", "round", 2, NULL);
	assert_null(j);
	assert_int_equal(mkdir(go_on, 0700), 0);
	json_decref(e2e_wait_event(&e.workers[FAULTY], "attempt", "round", 2, &from));
	assert_nobody_else_suffered(&e);
}

static void weights_that_are_no_numbers_are_not_given(void **state) {
	trains_the_round_again(state, "nan@12");
}

static void weights_that_are_no_numbers_end_no_training(void **state) {
	trains_the_round_again(state, "nan@10");
}

static void weights_too_large_to_be_averaged_are_not_given(void **state) {
	trains_the_round_again(state, "3e31@12");
}

static void who_trains_its_round_again_is_not_waited_for(void **state) {
	static struct e2e e;
	char go_on[E2E_PATH];
	*state = &e;
	open_faulty(&e, enough, "nan@12", go_on);
	json_t *without = e2e_wait_event(&e.workers[0], "round", "round", 3, NULL);
	assert_int_equal(e2e_int(without, "round"), 3);
	assert_int_equal(e2e_int(without, "participants"), WORKERS - 1);
	json_decref(without);
	assert_int_equal(mkdir(go_on, 0700), 0); /* one round behind, it is waited for until it has caught up */
	assert_nobody_else_suffered(&e);
}

/* A machine that is always wrong leaves, with a word; the others go on. */
static void who_has_nothing_to_give_three_times_leaves(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, enough, WORKERS);
	e2e_start_workers(&e, 2);
	e2e_start_worker(&e, FAULTY, "rivulet-worker-faulty", "RIVULET_FAULTY=inf@12*");
	e2e_start_worker(&e, 3, NULL, NULL);
	json_t *j = e2e_wait_event(&e.workers[FAULTY], "failed", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(j, "text"), "3 times in a row"));
	json_decref(j);
	assert_int_not_equal(process_wait(&e.workers[FAULTY]), 0);
	e2e_assert_same_end(&e, (const int[]){0, 1, 3}, 3, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(weights_that_are_no_numbers_are_not_given, e2e_teardown),
		cmocka_unit_test_teardown(weights_that_are_no_numbers_end_no_training, e2e_teardown),
		cmocka_unit_test_teardown(weights_too_large_to_be_averaged_are_not_given, e2e_teardown),
		cmocka_unit_test_teardown(who_trains_its_round_again_is_not_waited_for, e2e_teardown),
		cmocka_unit_test_teardown(who_has_nothing_to_give_three_times_leaves, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
