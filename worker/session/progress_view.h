/* progress_view.h: what a worker's progress line shows: its own steps or, while it catches up, the
 * rounds that it fetches. Each has its own label, so that their speeds are not mixed
 * (base/progress.h restarts with a new label). */
#ifndef RV_WORKER_SESSION_PROGRESS_VIEW_H
#define RV_WORKER_SESSION_PROGRESS_VIEW_H

#include "net/control/control.h"

struct progress_view {
	const char *label, *unit;
	uint64_t done, total; /* units */
};

/* Returns the view. `own_round`, `run_round`: the open round of this worker and of the run. `step`:
 * inner steps done. */
struct progress_view progress_view_of(enum worker_phase phase, uint64_t own_round, uint64_t run_round, uint64_t step,
									  uint64_t steps_per_round, uint64_t rounds);

#endif
