/* progress_view.c: see progress_view.h. */
#include "worker/session/progress_view.h"

/* Returns the step that training goes on from in `round`, or `step` if that is later. */
static uint64_t step_to_be(uint64_t step, uint64_t round, uint64_t steps_per_round) {
	uint64_t first = round * steps_per_round;
	return step > first ? step : first;
}

/* One round behind the run is the outer step that is being made, or the last round that is caught
 * up: the line already shows the round after it. */
struct progress_view progress_view_of(enum worker_phase phase, uint64_t own_round, uint64_t run_round, uint64_t step,
									  uint64_t steps_per_round, uint64_t rounds) {
	if (phase == WORKER_SYNCING && run_round > own_round + 1)
		return (struct progress_view){.label = "catching up", .unit = "round", .done = own_round, .total = run_round};
	/* The trainer adopts fetched state after the round did: until then its step is one of long
	 * ago. */
	step = step_to_be(step, phase == WORKER_SYNCING && run_round > own_round ? run_round : own_round, steps_per_round);
	return (struct progress_view){.label = "training", .unit = "step", .done = step, .total = steps_per_round * rounds};
}
