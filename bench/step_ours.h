/* step_ours.h: our own contestant in the step benchmark: random text, a replica, and its steps. */
#ifndef RV_BENCH_STEP_OURS_H
#define RV_BENCH_STEP_OURS_H

#include "bench/step_shapes.h"
#include "train/savings.h"

struct step_ours {
	struct dataset *data;
	struct replica *replica;
};

/* Opens a replica of `s` on `be`, borrowed. `savings`: NULL for none. The faults of replica_new. */
enum rv_err step_ours_open(struct step_ours *o, const struct step_shape *s, const struct savings *savings,
						   struct backend *be, struct rv_errtext *et);
void step_ours_close(struct step_ours *o);
/* Takes one step of the struct step_ours at ctx; a fault ends the process, with its text on
 * stderr. */
void step_ours_step(void *ctx);

#endif
