/* sim_kept.h: a universe in a file (tests/sim/kept/): its options and faults as they are, so that
 * it stays the same when seeds come to mean something else (sim_options.c, sim_plan.c).
 *
 * Text: `# why it is kept`, then one option a line (`rounds = 12`), then one fault a line (`fault =
 * kind=killed host=3 at_us=28993000 ...`; what is 0 is left out). Every option is there, once. */
#ifndef RV_TESTS_SIM_KEPT_H
#define RV_TESTS_SIM_KEPT_H

#include "tests/sim/sim.h"

/* The chosen faults of `plan` only. RV_E_IO: the file cannot be written. */
enum rv_err sim_kept_write(const char *path, const struct sim_options *opt, const struct sim_plan *plan,
						   const char *why, struct rv_errtext *et);
/* All faults are chosen. RV_E_INVALID: file and line. */
enum rv_err sim_kept_read(const char *path, struct sim_options *opt, struct sim_plan *plan, struct rv_errtext *et);

#endif
