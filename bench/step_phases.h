/* step_phases.h: the phases of our own step, against the limits of the machine measured in
 * between. */
#ifndef RV_BENCH_STEP_PHASES_H
#define RV_BENCH_STEP_PHASES_H

#include "bench/step_shapes.h"
#include "kernels/backend.h"

/* Runs `rounds` times s->steps steps of our own on a backend with `opt` and prints one JSON line
 * per phase, then a table: milliseconds per step (median over the rounds), rate, share of the limit
 * that binds the phase, and the time above that of the phase's target share. `excess_ms`: how much
 * too long the step is for its goal, 0 if it reaches it, NAN without a goal: the phases furthest
 * over their targets are then named. RV_E_NOMEM and the backend's faults. */
enum rv_err step_phases_print(const struct step_shape *s, const struct backend_options *opt, int rounds,
							  double excess_ms, struct rv_errtext *et);

#endif
