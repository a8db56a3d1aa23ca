/* test_e2e_slow_members.c: four real workers, one with a cap on its upload, under each policy for
 * slow members, and five in two rows: it rests, sends a coarser contribution, or a part of it, and
 * reads so; all end in one state, and so does a replay of their traces. What the meters find
 * decides in which rounds. */
#include "ends.h"
#include "tests/common/check.h"

#include <string.h>

enum { MOST = 5 };

/* 116 kB a contribution: 3.1 s at 300 kbit/s, twice the deadline; without a cap less than a second.
 * Three exchanges show it. */
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 16\nbatch = 1\ndata-shards = 5\n"                                 \
	"steps-per-round = 2\nrounds = 8\nsnapshot-every = 4\nslow-deadline-ms = 1500\n" E2E_PATIENT

#define FOUR      RUN "min-workers = 3\n"
#define FIVE_ROWS RUN "min-workers = 4\nrow-size = 3\n" /* two rows, with the slow one and without it */

static struct e2e e;
static int slow; /* the last worker */

static void run_to_its_end(void **state, const char *config, int n) {
	static const int everybody[MOST] = {0, 1, 2, 3, 4};
	char chain[65], full[65];
	*state = &e;
	slow = n - 1;
	e2e_open(&e, config, n);
	e.worker_args[0] = "--max-up"; /* it is among the first three, so that it takes part in the first rounds */
	e.worker_args[1] = "300kbit";
	e2e_start_worker(&e, slow, NULL, NULL);
	e.worker_args[0] = e.worker_args[1] = NULL;
	e2e_start_workers(&e, slow);
	e2e_assert_same_end(&e, everybody, n, chain, full);
	e2e_assert_replayed(&e, n, chain, full);
}

/* Returns the number of such events in the slow worker's log, and the last one (NULL: none). */
static int events_of(const char *name, json_t **last) {
	long from = 0;
	int n = 0;
	*last = NULL;
	for (json_t *j; (j = e2e_find_event(e.workers[slow].log, name, NULL, 0, &from)); n++) {
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

static void check_rest(void) {
	json_t *rests;
	assert_true(events_of("rests", &rests) > 0);
	assert_true(e2e_int(rests, "until_round") > e2e_int(rests, "round"));
	assert_true(e2e_int(rests, "needs_ms") > 1500 && e2e_int(rests, "deadline_ms") == 1500);
	assert_non_null(strstr(e2e_text(rests, "text"), "this worker takes part again in round"));
	json_decref(rests);
	check_deadlines();
}

static void it_rests(void **state) {
	run_to_its_end(state, FOUR "slow-members = skip\n", 4);
	check_rest();
}

/* Every roster was laid out in two rows: with the slow worker, and without it. */
static void check_rows(void) {
	char path[512];
	json_t *line;
	long from = 0;
	int in_rows = 0;
	(void)snprintf(path, sizeof path, "%s/worker0/trace.jsonl", e.dir);
	while ((line = e2e_find_event(path, "vote", NULL, 0, &from))) {
		assert_int_equal(json_array_size(json_object_get(line, "row_weights")), 2);
		in_rows++;
		json_decref(line);
	}
	assert_true(in_rows > 0);
}

/* The rows are laid out for those that take part: without the slow one in its rest, and with it
 * before and after. */
static void it_rests_in_a_run_of_rows(void **state) {
	run_to_its_end(state, FIVE_ROWS "slow-members = skip\n", MOST);
	check_rest();
	check_rows();
}

/* Returns the last event of the slow worker about what it sends. */
static json_t *sends_less(void **state, const char *config) {
	json_t *less;
	run_to_its_end(state, config, 4);
	assert_true(events_of("sends_less", &less) > 0);
	assert_int_equal(e2e_int(less, "deadline_ms"), 1500);
	check_deadlines();
	return less;
}

static void it_sends_a_coarser_contribution(void **state) {
	json_t *less = sends_less(state, FOUR "slow-members = coarser\nerror-feedback = 0.9\nouter = sgd\n");
	assert_int_equal(e2e_int(less, "part"), 0);
	assert_true(strlen(e2e_text(less, "codec")) > 0);
	assert_non_null(strstr(e2e_text(less, "text"), "this worker sends its contribution as"));
	json_decref(less);
}

static void it_sends_a_part(void **state) {
	json_t *less = sends_less(state, FOUR "slow-members = part\nerror-feedback = 0.9\nouter = sgd\n");
	assert_true(e2e_int(less, "part") >= 2);
	assert_non_null(strstr(e2e_text(less, "text"), "chunks of its contribution"));
	json_decref(less);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(it_rests, e2e_teardown),
		cmocka_unit_test_teardown(it_rests_in_a_run_of_rows, e2e_teardown),
		cmocka_unit_test_teardown(it_sends_a_coarser_contribution, e2e_teardown),
		cmocka_unit_test_teardown(it_sends_a_part, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
