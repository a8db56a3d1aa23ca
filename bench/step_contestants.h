/* step_contestants.h: the contestants of the step benchmark, and how each of them is started. */
#ifndef RV_BENCH_STEP_CONTESTANTS_H
#define RV_BENCH_STEP_CONTESTANTS_H

#include "bench/step_peer.h"
#include "bench/step_shapes.h"
#include "train/savings.h"

/* "Before" is ours, of another build of this program. PyTorch runs as it is (eager) and compiled,
 * each with glibc's malloc as it is, and with a malloc set to the fastest that we found ("tuned":
 * huge pages, and freed memory is kept), which people who start PyTorch do not have. */
enum contestant_kind {
	OURS_FP32,
	OURS_BF16,
	BEFORE_FP32,
	BEFORE_BF16,
	TORCH_FP32,
	TORCH_FP32_COMPILED,
	TORCH_FP32_TUNED,
	TORCH_FP32_COMPILED_TUNED,
	TORCH_BF16,
	TORCH_BF16_COMPILED,
	TORCH_BF16_TUNED,
	TORCH_BF16_COMPILED_TUNED,
	LLMC,
	N_CONTESTANTS
};

struct contestant {
	bool there;
	struct step_peer peer;
};

/* Returns a name such as "PyTorch bf16, tuned malloc". */
const char *contestant_name(enum contestant_kind k);
/* Say what a contestant is. llm.c is in fp32. */
bool contestant_is_torch(enum contestant_kind k);
bool contestant_is_bf16(enum contestant_kind k);
bool contestant_is_compiled(enum contestant_kind k);
bool contestant_is_tuned(enum contestant_kind k);
/* Returns how to install a missing peer. */
const char *contestant_missing(enum contestant_kind k);

/* The environment variable of a tuned contestant, as NAME=VALUE. */
extern const char contestant_tunables[];

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
