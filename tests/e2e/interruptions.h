/* interruptions.h: worker 0 of a run does not get on with it: it is killed, or stopped, again and
 * again. */
#ifndef TESTS_E2E_INTERRUPTIONS_H
#define TESTS_E2E_INTERRUPTIONS_H

#include "e2e.h"

/* Worker 0 is started and killed at each of these failpoints ("name@count", counted from the start
 * of each of its processes), then started for good; the others, which are gated, are started behind
 * its first start. */
void e2e_die_often(struct e2e *e, const char *const *failpoints, size_t n);
/* The same at moments when nobody has its contribution yet, or the replica that it was made from is
 * on its disk: nothing is lost but time. The run wants some 30 rounds. */
void e2e_die_without_loss(struct e2e *e);
/* And at others: it may be that its contribution counts, and the replica that it was made from
 * never came to the disk. The run wants some 100 rounds. */
void e2e_die_anywhere(struct e2e *e);
/* Starts both; worker 0 gets SIGTERM, in any phase, when worker 1 has seen round `every`, and
 * is started again; so many times, each `every` rounds later. */
void e2e_stop_and_start(struct e2e *e, int64_t every, int times);

#endif
