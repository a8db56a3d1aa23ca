/* step_ours.h: our own model of the step benchmark: random text, a replica, and its steps. */
#ifndef RV_BENCH_STEP_OURS_H
#define RV_BENCH_STEP_OURS_H

#include "bench/step_shapes.h"
#include "kernels/backend.h"

struct step_ours {
	struct dataset *data;
	struct replica *replica;
};

/* A replica of `s` on `be`, borrowed. Faults as replica_new. */
enum rv_err step_ours_open(struct step_ours *o, const struct step_shape *s, struct backend *be, struct rv_errtext *et);
void step_ours_close(struct step_ours *o);
/* One step of the struct step_ours at ctx; a fault ends the process, with its text on stderr. */
void step_ours_step(void *ctx);

#endif
