/* test_e2e_withholding.c: members that hold the others up with an honest face: they withhold what they owe, whatever
 * they say of themselves, or train for ever. The others are never named for it, and the run goes on. */
#include "e2e.h"
#include "rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BAD = 3, ROUNDS_ON = 7, GHOST_ROUNDS = 20 };

static const char run[] = "n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
						  "min-workers = 3\nsteps-per-round = 3\nrounds = 100000\nsnapshot-every = 4\n"
						  "grace-ms = 3000\nsilence-ms = 3000\nownership = equal\n"; /* it owns a part in every round */
static const int others[] = {0, 1, 2};

static void open_with_bad(struct e2e *e, const char *program, const char *env) {
	e2e_open(e, run, 4);
	e2e_start_workers(e, 3);
	e2e_start_worker(e, BAD, program, env);
}

/* How often the coordinator has named member `who` in events of that kind. */
static int count_named(const struct e2e *e, const char *event, int who) {
	char prefix[32];
	long from = 0;
	int n = 0;
	snprintf(prefix, sizeof prefix, "member %d ", who);
	for (json_t *j; (j = e2e_find_event(e->coordinator.log, event, NULL, 0, &from)); json_decref(j))
		n += strncmp(e2e_text(j, "text"), prefix, strlen(prefix)) == 0;
	return n;
}

static void assert_no_honest_one_is_named(const struct e2e *e, int bad) {
	static const char *const events[] = {"suspected", "overdue", "excluded", "disagreed", "in_vain"};
	assert_null(e2e_find_event(e->coordinator.log, "apart", NULL, 0, NULL));
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		for (int who = 0; who < e->n_workers; who++)
			assert_true(who == bad || count_named(e, events[i], who) == 0);
}

/* How many of so many rounds it may spoil: the first, the second, the fourth, the eighth ... */
static int most_spoiled(int64_t rounds) {
	int n = 1;
	for (int64_t away = 1; away <= rounds; away *= 2)
		n++;
	return n;
}

static void goes_on_without(struct e2e *e, const char *how) {
	json_t *first = e2e_wait_event(&e->coordinator, "suspected", NULL, 0, NULL);
	const int64_t from = e2e_latest_round(e, 0), until = from + ROUNDS_ON;
	e2e_wait_for_round(e, others, 3, until);
	json_t *last = e2e_wait_event(&e->coordinator, "excluded", NULL, 0, NULL);
	assert_no_honest_one_is_named(e, BAD);
	const int suspected = count_named(e, "suspected", BAD);
	assert_in_range(suspected, 2, most_spoiled(e2e_latest_round(e, 0) - from + 1));
	assert_in_range(count_named(e, "excluded", BAD), 1, suspected - 1);
	print_message("%s: named %.1f s before it was excluded\n", how, e2e_time(last) - e2e_time(first));
	json_decref(first);
	json_decref(last);
	e2e_assert_same_chain(e, others, 3, until);
}

static void contributions_are_withheld(void **state) {
	static struct e2e e;
	*state = &e;
	open_with_bad(&e, "rivulet-worker-withholding", "RIVULET_WITHHOLD=contributions");
	goes_on_without(&e, "contributions");
}

static void means_are_withheld(void **state) {
	static struct e2e e;
	*state = &e;
	open_with_bad(&e, "rivulet-worker-withholding", "RIVULET_WITHHOLD=means");
	goes_on_without(&e, "means");
}

/* Rosters leave one out in turn, until it is that one. */
static void every_peer_gets_another_mean(void **state) {
	static struct e2e e;
	*state = &e;
	open_with_bad(&e, "rivulet-worker-withholding", "RIVULET_WITHHOLD=unlike");
	json_decref(e2e_wait_event(&e.coordinator, "unlike", NULL, 0, NULL));
	const int64_t until = e2e_latest_round(&e, 0) + 2;
	e2e_wait_for_round(&e, others, 3, until);
	e2e_assert_same_chain(&e, others, 3, until);
}

/* It reports all the while that it trains. There from the start: whoever comes later is behind, and not waited for. */
static void a_ghost_trains_for_ever(void **state) {
	static struct e2e e;
	static const int all_but_first[] = {1, 2, 3};
	*state = &e;
	e2e_open(&e, run, 4);
	e2e_gate_at(&e, 0);
	e2e_start_worker(&e, 0, E2E_GATED, NULL);
	for (int i = 1; i <= 3; i++)
		e2e_start_worker(&e, i, NULL, NULL);
	json_decref(e2e_wait_event(&e.coordinator, "in_vain", NULL, 0, NULL));
	e2e_wait_for_round(&e, all_but_first, 3, e2e_latest_round(&e, 1) + GHOST_ROUNDS);
	assert_no_honest_one_is_named(&e, 0);
	assert_in_range(count_named(&e, "in_vain", 0), 1, 6);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(contributions_are_withheld, e2e_teardown),
		cmocka_unit_test_teardown(means_are_withheld, e2e_teardown),
		cmocka_unit_test_teardown(every_peer_gets_another_mean, e2e_teardown),
		cmocka_unit_test_teardown(a_ghost_trains_for_ever, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
