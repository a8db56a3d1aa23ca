/* test_e2e_slow_members.c: four real workers, one with a cap on its upload, under each policy for
 * slow members: it rests, sends a coarser contribution, or a part of it, and reads so; all end in
 * one state, and so does a replay of their traces. What the meters find decides in which rounds. */
#include "ends.h"
#include "tests/common/check.h"

#include <string.h>

enum { WORKERS = 4, SLOW = 3, ROUNDS = 8 };

/* 116 kB a contribution: 3.1 s at 300 kbit/s, twice the deadline; without a cap less than a second.
 * Three exchanges show it. */
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 16\nbatch = 1\ndata-shards = 4\nmin-workers = 3\n"                \
	"steps-per-round = 2\nrounds = 8\nsnapshot-every = 4\nslow-deadline-ms = 1500\n" E2E_PATIENT

static const int everybody[] = {0, 1, 2, 3};
static struct e2e e;

static void run_to_its_end(void **state, const char *config) {
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e.worker_args[0] = "--max-up"; /* it is among the first three, so that it takes part in the first rounds */
	e.worker_args[1] = "300kbit";
	e2e_start_worker(&e, SLOW, NULL, NULL);
	e.worker_args[0] = e.worker_args[1] = NULL;
	e2e_start_workers(&e, SLOW);
	e2e_assert_same_end(&e, everybody, WORKERS, chain, full);
	e2e_assert_replayed(&e, WORKERS, chain, full);
}

/* Returns the number of such events in the slow worker's log, and the last one (NULL: none). */
static int events_of(const char *name, json_t **last) {
	long from = 0;
	int n = 0;
	*last = NULL;
	for (json_t *j; (j = e2e_find_event(e.workers[SLOW].log, name, NULL, 0, &from)); n++) {
		json_decref(*last);
		*last = j;
	}
	return n;
}

/* Everybody reads the deadline of the attempt, and what the exchange should take. */
static void check_deadlines(void) {
	json_t *attempt;
	assert_true(events_of("attempt", &attempt) > 0);
	assert_true(e2e_int(attempt, "deadline_ms") > 1500);
	assert_non_null(strstr(e2e_text(attempt, "text"), "closes within"));
	json_decref(attempt);
}

static void it_rests(void **state) {
	json_t *rests;
	run_to_its_end(state, RUN "slow-members = skip\n");
	assert_true(events_of("rests", &rests) > 0);
	assert_true(e2e_int(rests, "until_round") > e2e_int(rests, "round"));
	assert_true(e2e_int(rests, "needs_ms") > 1500 && e2e_int(rests, "deadline_ms") == 1500);
	assert_non_null(strstr(e2e_text(rests, "text"), "this worker takes part again in round"));
	json_decref(rests);
	check_deadlines();
}

/* Returns the last event of the slow worker about what it sends. */
static json_t *sends_less(void **state, const char *config) {
	json_t *less;
	run_to_its_end(state, config);
	assert_true(events_of("sends_less", &less) > 0);
	assert_int_equal(e2e_int(less, "deadline_ms"), 1500);
	check_deadlines();
	return less;
}

static void it_sends_a_coarser_contribution(void **state) {
	json_t *less = sends_less(state, RUN "slow-members = coarser\nerror-feedback = 0.9\nouter = sgd\n");
	assert_int_equal(e2e_int(less, "part"), 0);
	assert_true(strlen(e2e_text(less, "codec")) > 0);
	assert_non_null(strstr(e2e_text(less, "text"), "this worker sends its contribution as"));
	json_decref(less);
}

static void it_sends_a_part(void **state) {
	json_t *less = sends_less(state, RUN "slow-members = part\nerror-feedback = 0.9\nouter = sgd\n");
	assert_true(e2e_int(less, "part") >= 2);
	assert_non_null(strstr(e2e_text(less, "text"), "chunks of its contribution"));
	json_decref(less);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(it_rests, e2e_teardown),
		cmocka_unit_test_teardown(it_sends_a_coarser_contribution, e2e_teardown),
		cmocka_unit_test_teardown(it_sends_a_part, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
