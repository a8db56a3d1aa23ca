/* step_contestants.h: the contestants of the step benchmark, and how each of them is started. */
#ifndef RV_BENCH_STEP_CONTESTANTS_H
#define RV_BENCH_STEP_CONTESTANTS_H

#include "bench/step_peer.h"
#include "bench/step_shapes.h"
#include "train/savings.h"

/* "Before" is ours, of another build of this program. PyTorch runs as it is (eager), and
 * compiled. */
enum contestant_kind {
	OURS_FP32,
	OURS_BF16,
	BEFORE_FP32,
	BEFORE_BF16,
	TORCH_FP32,
	TORCH_FP32_COMPILED,
	TORCH_BF16,
	TORCH_BF16_COMPILED,
	LLMC,
	N_CONTESTANTS
};

struct contestant {
	bool there;
	struct step_peer peer;
};

/* Returns a name such as "PyTorch bf16". */
const char *contestant_name(enum contestant_kind k);
/* Returns how to install a missing peer. */
const char *contestant_missing(enum contestant_kind k);

/* Options of our own contestants, as given on the command line. */
struct ours_options {
	const char *isa;
	const char *before; /* the program of the contestants "before"; "": none */
	const struct savings *savings;
};

/* Starts a contestant and blocks until its model is ready; c->there: false if it is missing.
 * `ours`: for our own. */
void contestant_start(struct contestant *c, enum contestant_kind k, const struct step_shape *s, int threads,
					  const struct ours_options *ours);

#endif
