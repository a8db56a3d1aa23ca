/* savings.h: what a replica does to take less memory. Each worker chooses for itself: the run
 * fixes which sequences a step reads, not how many of them are computed at a time. */
#ifndef RV_TRAIN_SAVINGS_H
#define RV_TRAIN_SAVINGS_H

#include "base/run_config.h"
#include "kernels/moments.h"
#include "train/model/model.h"

#include <stdbool.h>

/* The division of a replica's vectors among several devices, of which each has a slice (decisions
 * 0107, 0108). A value divides what the one before does, too. */
enum zero {
	ZERO_MOMENTS,   /* ZeRO-1: the moments alone */
	ZERO_GRADIENTS, /* gradients, summed to their owners after each micro-batch */
	ZERO_WEIGHTS,   /* weights, gathered layer by layer for each pass */
};
/* The values of option `zero`, in the order of the enum. */
#define ZERO_NAMES "1|2|3"

struct savings {
	/* Sequences of a micro-batch; 0: the run's `batch`. A step reads batch * grad_accum sequences
	 * whatever it is. Gradients are the same sum in another order, so their last bits depend on
	 * it. */
	int micro_batch;
	enum recompute recompute;
	/* On a GPU: weights in fp32 and moments in the host's memory, and the optimizer's step there
	 * (decision 0087). Elsewhere it changes nothing. */
	bool offload;
	/* Whether a worker's state goes to the disk from where it lies: no copies of it are made, and
	 * training waits for what it would change. From a GPU's memory it goes through pieces of pinned
	 * memory, and the GPU waits until it is read. The same bits; elsewhere it changes nothing. */
	bool stream;
	/* On a GPU: rows of logits that exist at a time, a multiple of LOGITS_TILE; 0: all of a
	 * micro-batch. Fewer take less memory, and each chunk of them reads and adds to all of the
	 * classifier's weights. Sums over sequences, as of micro_batch. */
	int logits_rows;
	enum zero zero;       /* with several devices; a single one has everything anyway */
	enum moments moments; /* Adam's moments in 8 bits: other bits, about the same loss (decision 0085) */
};

/* Rows of a tile of products on a GPU: chunks of logits are whole tiles. */
enum { LOGITS_TILE = 256 };

/* The values of options `offload` and `stream-state`. */
#define OFFLOAD_NAMES "no|yes"
#define STREAM_NAMES  "no|yes"

/* Returns the sequences of a step that read one data shard. */
static inline uint64_t savings_step_sequences(const struct run_config *run) {
	return (uint64_t)(run->batch * run->grad_accum);
}

/* Returns the sequences of a step that the one of `devices` with the most has. */
static inline uint64_t savings_share(const struct run_config *run, int devices) {
	return (savings_step_sequences(run) + (uint64_t)devices - 1) / (uint64_t)devices;
}

/* Returns the sequences of a micro-batch: at most those of a step. */
static inline int savings_micro_batch(const struct savings *s, const struct run_config *run) {
	const uint64_t wanted = s->micro_batch > 0 ? (uint64_t)s->micro_batch : (uint64_t)run->batch;
	const uint64_t all = savings_step_sequences(run);
	return (int)(wanted < all ? wanted : all);
}

#endif
