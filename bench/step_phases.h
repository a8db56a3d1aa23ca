/* step_phases.h: the phases of our own step, against the limits of the machine measured in
 * between. */
#ifndef RV_BENCH_STEP_PHASES_H
#define RV_BENCH_STEP_PHASES_H

#include "bench/step_peer.h"
#include "bench/step_shapes.h"
#include "train/savings.h"

struct step_phases_options {
	const struct backend_options *backend;
	const struct savings *savings;
	enum step_clock clock;
	int rounds;
	double excess_ms; /* how much too long the step is for its goal, 0 if it reaches it, NAN without a goal */
	double peer_ms;   /* of the fastest PyTorch; NAN: unknown */
};

/* Runs `rounds` times s->steps steps of our own and prints one JSON line per phase, then a table:
 * milliseconds per step (median over the rounds), rate, share of the limit that binds the phase,
 * and the time above that of the phase's target share. Then the time of the products alone at their
 * limit, and what it would be against the peer. If the step is too long for its goal, names the
 * phases furthest over their targets. RV_E_NOMEM and the backend's faults. */
enum rv_err step_phases_print(const struct step_shape *s, const struct step_phases_options *opt, struct rv_errtext *et);

#endif
