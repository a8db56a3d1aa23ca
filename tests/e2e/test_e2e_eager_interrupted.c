/* test_e2e_eager_interrupted.c: real workers whose outer steps come one whole round late, killed or
 * stopped at any moment, alone or all at once, late, or without what was their own: all end in the
 * same bits, which a replay of their logs makes. */
#include "ends.h"
#include "interruptions.h"
#include "rounds.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdio.h>

enum { WORKERS = 2, AHEAD = 4 };

#define SHAPE                                                                                                          \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\nmin-workers = 2\n"                \
	"steps-per-round = 5\nsnapshot-every = 3\n"
#define RUN SHAPE E2E_PATIENT
/* A round that has failed twice stays closed for a quarter of silence-ms, then for longer: deaths
 * in all-reduces are tested with a short one. Both workers are needed: none is left out. */
#define MORTAL SHAPE E2E_STEADY
#define EAGER  "updates = eager\neager-share = 0.5\n"
/* The run goes on without workers that are away. */
#define HASTY                                                                                                          \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\nmin-workers = 2\n"                \
	"steps-per-round = 6\nrounds = 80\nsnapshot-every = 10\n" E2E_STEADY

static void killed_at_any_moment_it_ends_in_the_others_bits(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, MORTAL EAGER "rounds = 100\n", WORKERS);
	e2e_die_anywhere(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
}

/* Both vote, and neither process that did lives to do the outer step: what later ones do, from
 * their disks, is replayed all the same. */
static void all_killed_between_vote_and_outer_step_are_replayed(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, RUN EAGER "rounds = 30\n", WORKERS);
	for (int deaths = 0; deaths < 3; deaths++) {
		for (int i = 0; i < WORKERS; i++)
			e2e_launch_worker_as(&e, i, "rivulet-worker-failpoint", "RIVULET_FAILPOINT=commit.seen@3=kill");
		for (int i = 0; i < WORKERS; i++)
			process_assert_exit(&e.workers[i], 128 + SIGKILL);
	}
	e2e_start_workers(&e, WORKERS);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
	e2e_assert_replayed(&e, WORKERS, chain, full);
}

/* Wherever they are. */
static void check_all_interrupted(void **state, int signal, int status) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	e2e_open(&e, MORTAL EAGER "rounds = 60\n", WORKERS);
	e2e_gate_at(&e, 8 + AHEAD);
	e2e_start_gated_workers(&e, WORKERS);
	for (int64_t round = 8; round <= 48; round += 8) {
		json_decref(e2e_wait_event(&e.workers[1], "round", "round", round, NULL));
		for (int i = 0; i < WORKERS; i++)
			process_signal(&e.workers[i], signal);
		e2e_gate_at(&e, round + 8 + AHEAD); /* a worker that gets the signal ends its step first */
		for (int i = 0; i < WORKERS; i++)
			process_assert_exit(&e.workers[i], status);
		for (int i = 0; i < WORKERS; i++)
			e2e_launch_worker_as(&e, i, E2E_GATED, NULL);
	}
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1}, WORKERS, chain, full);
	e2e_assert_replayed(&e, WORKERS, chain, full);
}

static void all_stopped_and_started_again_and_again_are_replayed(void **state) {
	check_all_interrupted(state, SIGTERM, 0);
}

static void all_killed_at_once_again_and_again_are_replayed(void **state) {
	check_all_interrupted(state, SIGKILL, 128 + SIGKILL);
}

/* One is killed and comes back, with its files or without its replica; one comes when rounds have
 * passed. */
static void check_replay(void **state, bool loses_its_own) {
	static struct e2e e;
	char chain[65], full[65], dir[E2E_PATH], path[E2E_PATH + 32];
	*state = &e;
	e2e_open(&e, HASTY EAGER, 4);
	e2e_gate_at(&e, 30);
	e2e_start_gated_workers(&e, 3);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 20);
	process_signal(&e.workers[2], SIGKILL);
	process_assert_exit(&e.workers[2], 128 + SIGKILL);
	e2e_gate_at(&e, 60);
	e2e_wait_for_round(&e, (const int[]){0}, 1, 40);
	e2e_worker_dir(&e, 2, dir);
	snprintf(path, sizeof path, "%s/replica.rvp", dir);
	if (loses_its_own)
		assert_int_equal(remove(path), 0);
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	e2e_start_worker(&e, 3, E2E_GATED, NULL);
	e2e_wait_level(&e, 4);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, 3}, 4, chain, full);
	e2e_assert_replayed(&e, 4, chain, full);
	json_t *told = e2e_find_event(e.workers[2].log, "start_over", NULL, 0, NULL);
	assert_true(told != NULL || !loses_its_own);
	json_decref(told);
}

static void a_worker_that_was_away_and_one_that_comes_late_are_replayed(void **state) {
	check_replay(state, false);
}

static void a_worker_that_lost_what_was_its_own_says_so_and_is_replayed(void **state) {
	check_replay(state, true);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(killed_at_any_moment_it_ends_in_the_others_bits, e2e_teardown),
		cmocka_unit_test_teardown(all_killed_between_vote_and_outer_step_are_replayed, e2e_teardown),
		cmocka_unit_test_teardown(all_stopped_and_started_again_and_again_are_replayed, e2e_teardown),
		cmocka_unit_test_teardown(all_killed_at_once_again_and_again_are_replayed, e2e_teardown),
		cmocka_unit_test_teardown(a_worker_that_was_away_and_one_that_comes_late_are_replayed, e2e_teardown),
		cmocka_unit_test_teardown(a_worker_that_lost_what_was_its_own_says_so_and_is_replayed, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
