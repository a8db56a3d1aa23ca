/* rounds.c: see rounds.h. */
#include "rounds.h"
#include "tests/common/check.h"

#include <string.h>
#include <time.h>

/* What worker i told of `round`, or NULL; the caller's. */
static json_t *round_of(const struct e2e *e, int i, int64_t round) {
	long from = 0;
	for (json_t *j; (j = e2e_find_event(e->workers[i].log, "round", "round", round, &from)); json_decref(j))
		if (e2e_int(j, "round") == round)
			return j;
	return NULL;
}

/* The first round, `round` or later, that worker i tells of; waits for it. */
static int64_t told_from(const struct e2e *e, int i, int64_t round) {
	json_t *j = e2e_wait_event(&e->workers[i], "round", "round", round, NULL);
	const int64_t told = e2e_int(j, "round");
	json_decref(j);
	return told;
}

/* The first one that all of the set tell of. */
static int64_t common_round(const struct e2e *e, const int *workers, int n, int64_t round) {
	for (int agreed = 0; agreed < n;) {
		const int64_t told = told_from(e, workers[agreed], round);
		agreed = told == round ? agreed + 1 : 0;
		round = told;
	}
	return round;
}

void e2e_assert_same_chain(const struct e2e *e, const int *workers, int n, int64_t round) {
	round = common_round(e, workers, n, round);
	json_t *first = round_of(e, workers[0], round);
	for (int k = 1; k < n; k++) {
		json_t *other = round_of(e, workers[k], round);
		assert_string_equal(e2e_text(other, "chain"), e2e_text(first, "chain"));
		json_decref(other);
	}
	json_decref(first);
}

void e2e_wait_for_round(struct e2e *e, const int *workers, int n, int64_t round) {
	for (int k = 0; k < n; k++)
		json_decref(e2e_wait_event(&e->workers[workers[k]], "round", "round", round, NULL));
}

int64_t e2e_latest_round(const struct e2e *e, int i) {
	int64_t round = 0;
	long from = 0;
	for (json_t *j; (j = e2e_find_event(e->workers[i].log, "round", NULL, 0, &from)); json_decref(j))
		round = e2e_int(j, "round");
	return round;
}

/* Member i, by the coordinator's word: at most `behind` rounds behind the run. */
static bool is_level(const json_t *status, int i, int64_t behind) {
	const json_t *m = json_array_get(json_object_get(status, "members"), (size_t)i);
	const char *phase = m ? json_string_value(json_object_get(m, "phase")) : NULL;
	const bool trains = phase && (strcmp(phase, "training") == 0 || strcmp(phase, "ready") == 0);
	return trains && e2e_int(m, "round") + behind >= e2e_int(status, "round");
}

static bool are_level(struct e2e *e, int n, int lost, int64_t behind) {
	json_t *status = e2e_status(e);
	bool level = true;
	for (int i = 0; i < n; i++)
		level = level && (i == lost || is_level(status, i, behind));
	json_decref(status);
	return level;
}

static void wait_level(struct e2e *e, int n, int lost, int64_t behind) {
	for (int tries = 0; tries < 10 * PROCESS_WAIT_S; tries++) {
		if (are_level(e, n, lost, behind))
			return;
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000000}, NULL);
	}
	fail_msg("%d members never came to hold the state of one round", n);
}

void e2e_wait_level(struct e2e *e, int n) {
	wait_level(e, n, -1, 0);
}

void e2e_wait_level_but(struct e2e *e, int n, int lost) {
	wait_level(e, n, lost, 0);
}

void e2e_wait_nearly_level(struct e2e *e, int n) {
	wait_level(e, n, -1, 1);
}

/* The survivors took the round up again without the lost one, and committed it. */
void e2e_assert_committed_by_survivors(struct e2e *e, int64_t round, double lost_s, const char *what) {
	static const int survivors[] = {0, 1, 2};
	double detected_s = 0, committed_s = 0;
	e2e_wait_for_round(e, survivors, 3, round + 1);
	for (int k = 0; k < 3; k++) {
		long from = 0;
		bool retried = false;
		json_t *j;
		while ((j = e2e_find_event(e->workers[k].log, "attempt", "round", round, &from))) {
			retried = retried || (e2e_int(j, "round") == round && e2e_int(j, "attempt") >= 2);
			json_decref(j);
		}
		assert_true(retried);
		from = 0;
		j = e2e_find_event(e->workers[k].log, "suspects", "round", round, &from);
		if (j && (detected_s == 0 || e2e_time(j) < detected_s))
			detected_s = e2e_time(j);
		json_decref(j);
		j = round_of(e, k, round + 1);
		assert_in_range(e2e_int(j, "participants"), 1, 3);
		committed_s = e2e_time(j) > committed_s ? e2e_time(j) : committed_s;
		json_decref(j);
	}
	e2e_assert_same_chain(e, survivors, 3, round + 1);
	print_message("%s: detected after %.2f s, committed by all survivors %.2f s later\n", what, detected_s - lost_s,
				  committed_s - detected_s);
}

/* Takes part in an all-reduce of a round after the state it fetched. */
void e2e_assert_takes_part_again(struct e2e *e, int i, long from) {
	json_t *fetched = e2e_wait_event(&e->workers[i], "fetch", NULL, 0, &from);
	json_decref(fetched);
	json_t *attempt = e2e_wait_event(&e->workers[i], "attempt", NULL, 0, &from);
	int64_t round = e2e_int(attempt, "round");
	json_decref(attempt);
	json_decref(e2e_wait_event(&e->workers[i], "round", "round", round + 1, &from));
	e2e_wait_for_round(e, (const int[]){0}, 1, round + 1);
	e2e_assert_same_chain(e, (const int[]){0, i}, 2, round + 1);
}

void e2e_assert_no_state_was_wrong(struct e2e *e, int n) {
	static const char *const bad[] = {"document", "old_store", "install_failed", "apply_failed",
									  "spoiled",  "failed",    "storage"};
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
			json_t *j = e2e_find_event(e->workers[i].log, bad[k], NULL, 0, NULL);
			if (j)
				fail_msg("worker %d: %s", i, e2e_text(j, "text"));
		}
}

long e2e_lines_so_far(const struct e2e *e, int i) {
	long from = 0;
	for (json_t *j; (j = e2e_find_event(e->workers[i].log, "round", NULL, 0, &from));)
		json_decref(j);
	return from;
}

/* The round whose all-reduce it was in. */
int64_t e2e_last_attempt(const struct e2e *e, int i) {
	int64_t round = -1;
	long from = 0;
	for (json_t *j; (j = e2e_find_event(e->workers[i].log, "attempt", NULL, 0, &from)); json_decref(j))
		round = e2e_int(j, "round");
	return round;
}
