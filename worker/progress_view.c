/* progress_view.c: see progress_view.h. */
#include "worker/progress_view.h"

/* One round behind is the outer step that is being made, or the last one caught up: the step is that of behind it. */
static uint64_t step_to_be(uint64_t step, uint64_t run_round, uint64_t steps_per_round) {
	uint64_t after = run_round * steps_per_round;
	return step > after ? step : after;
}

struct progress_view progress_view_of(enum worker_phase phase, uint64_t own_round, uint64_t run_round, uint64_t step,
									  uint64_t steps_per_round, uint64_t rounds) {
	if (phase == WORKER_SYNCING && run_round > own_round + 1)
		return (struct progress_view){.label = "catching up", .unit = "round", .done = own_round, .total = run_round};
	if (phase == WORKER_SYNCING && run_round > own_round)
		step = step_to_be(step, run_round, steps_per_round);
	return (struct progress_view){.label = "training", .unit = "step", .done = step, .total = steps_per_round * rounds};
}
