/* progress_view.h: what a worker's progress line watches: its own steps or, while it catches up, the rounds that it
 * takes over from others. Each has a label of its own, so the speed of one is never taken for that of the other
 * (base/progress.h starts afresh with a new label). */
#ifndef RV_WORKER_SESSION_PROGRESS_VIEW_H
#define RV_WORKER_SESSION_PROGRESS_VIEW_H

#include "net/control/control.h"

struct progress_view {
	const char *label, *unit;
	uint64_t done, total; /* units */
};

/* own_round, run_round: the open one, as this worker has it and as the run does. step: inner steps done. */
struct progress_view progress_view_of(enum worker_phase phase, uint64_t own_round, uint64_t run_round, uint64_t step,
									  uint64_t steps_per_round, uint64_t rounds);

#endif
