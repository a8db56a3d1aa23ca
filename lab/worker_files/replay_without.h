/* replay_without.h: what one member's contribution did to a round: held-out losses after the outer
 * step with all contributions, and with all but that one. */
#ifndef RV_LAB_REPLAY_WITHOUT_H
#define RV_LAB_REPLAY_WITHOUT_H

#include "lab/methods/averaging.h"

/* Nats per token, of the shared weights after the round. */
struct replay_without {
	double with, without;
};

/* Checks that rounds of this run can be averaged without one of their contributions.
 * RV_E_UNSUPPORTED: owners add to means what only they know (mean-feedback). */
enum rv_err replay_without_check(const struct run_config *run, struct rv_errtext *et);
/* Measures the round under way, whose mean of `given` is in r->reduced, without the contribution at
 * `place`, one of several. r stays as it is. RV_E_RANGE: a loss is not finite; RV_E_NOMEM. */
enum rv_err replay_without(struct lab_run *r, const struct averaging_given *given, int place,
						   struct replay_without *out, struct rv_errtext *et);

#endif
