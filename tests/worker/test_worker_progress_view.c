/* test_worker_progress_view.c: the time left that a worker shows is that of its own training. */
#include "base/progress.h"
#include "tests/common/check.h"
#include "worker/session/progress_view.h"

#include <string.h>

enum { S = 1000000, STEPS_PER_ROUND = 10, RUN_ROUND = 500, ROUNDS = 600 };

static struct rv_progress_state line;

static void watch(int64_t now_us, enum worker_phase phase, uint64_t own_round, uint64_t run_round,
				  uint64_t steps_done) {
	const struct progress_view v = progress_view_of(phase, own_round, run_round,
													own_round * STEPS_PER_ROUND + steps_done, STEPS_PER_ROUND, ROUNDS);
	rv_progress_observe(&line, now_us, v.label, v.done);
}

static void shows(uint64_t total, const char *unit, const char *want) {
	char out[200];
	(void)rv_progress_render(&line, total, unit, "", out, sizeof out);
	if (!strstr(out, want))
		fail_msg("'%s' is expected in: %s", want, out);
}

/* 500 rounds, of 10 steps each, are caught up in 50 s; then it trains a step a second. */
static void rounds_caught_up_are_no_speed(void **state) {
	(void)state;
	int64_t now_us = S;
	memset(&line, 0, sizeof line);
	for (uint64_t r = 0; r < RUN_ROUND; r++, now_us += S / 10)
		watch(now_us, WORKER_SYNCING, r, RUN_ROUND, 0);
	now_us -= S / 10; /* it trains at once */
	for (uint64_t step = 0; step <= 5; step++, now_us += S)
		watch(now_us, WORKER_TRAINING, RUN_ROUND, RUN_ROUND, step);
	shows(ROUNDS * STEPS_PER_ROUND, "step", "1 step/s  ETA 16:35"); /* 995 steps */
}

/* A joiner's round is 500 as soon as the state is there; its trainer's step is 0 until it has taken
 * that over. */
static void state_that_the_trainer_adopts_later_is_no_speed(void **state) {
	(void)state;
	memset(&line, 0, sizeof line);
	for (int64_t step = -3; step <= 5; step++) {
		uint64_t done = step < 0 ? 0 : RUN_ROUND * STEPS_PER_ROUND + (uint64_t)step;
		const struct progress_view v =
			progress_view_of(WORKER_TRAINING, RUN_ROUND, RUN_ROUND, done, STEPS_PER_ROUND, ROUNDS);
		rv_progress_observe(&line, (10 + step) * S, v.label, v.done);
	}
	shows(ROUNDS * STEPS_PER_ROUND, "step", "83% 5005/6000 step  0.625 step/s");
}

static void catching_up_has_a_line_of_its_own(void **state) {
	(void)state;
	memset(&line, 0, sizeof line);
	for (uint64_t r = 0; r <= 100; r++)
		watch((int64_t)(S + r * S / 10), WORKER_SYNCING, r, RUN_ROUND, 0);
	shows(RUN_ROUND, "round", "catching up [####................] 20% 100/500 round  10 round/s  ETA 0:40");
}

/* Between a commit and its outer step the next round is already open: that is no catching up. */
static void the_outer_step_does_not_start_the_line_afresh(void **state) {
	(void)state;
	int64_t now_us = S;
	memset(&line, 0, sizeof line);
	for (uint64_t r = 0; r < 3; r++) {
		for (uint64_t step = 0; step < STEPS_PER_ROUND; step++, now_us += S)
			watch(now_us, WORKER_TRAINING, r, r, step);
		watch(now_us, WORKER_SYNCING, r, r + 1, STEPS_PER_ROUND);
	}
	shows(ROUNDS * STEPS_PER_ROUND, "step", "1 step/s");
	assert_string_equal(line.label, "training");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_caught_up_are_no_speed),
		cmocka_unit_test(state_that_the_trainer_adopts_later_is_no_speed),
		cmocka_unit_test(catching_up_has_a_line_of_its_own),
		cmocka_unit_test(the_outer_step_does_not_start_the_line_afresh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
