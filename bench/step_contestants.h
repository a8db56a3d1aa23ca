/* step_contestants.h: who takes part in the step benchmark, and how each of them is started. */
#ifndef RV_BENCH_STEP_CONTESTANTS_H
#define RV_BENCH_STEP_CONTESTANTS_H

#include "bench/step_peer.h"
#include "bench/step_shapes.h"

enum contestant_kind { OURS_FP32, OURS_BF16, TORCH_FP32, TORCH_BF16, LLMC, N_CONTESTANTS };

struct contestant {
	bool there;
	struct step_peer peer;
};

/* "PyTorch bf16" */
const char *contestant_name(enum contestant_kind k);
/* What to do when one that is not ours is not there. */
const char *contestant_missing(enum contestant_kind k);

/* `isa`: for ours. Blocks until the model stands; there: false when it cannot be had. */
void contestant_start(struct contestant *c, enum contestant_kind k, const struct step_shape *s, int threads,
					  const char *isa);

#endif
