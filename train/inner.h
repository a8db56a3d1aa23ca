/* inner.h: inner optimizers, which move a replica's weights by its gradient. One file each.
 *
 * All keep their state in the replica's vectors m and v (zero at the start, part of its saved
 * state); g' = grad_scale * g is the gradient after clipping, wd the decay of spans that decay,
 * else 0.
 *
 *   adamw  Loshchilov & Hutter 2019, algorithm 2: adamw_params of kernels/backend.h.
 *   sgd    p <- p - lr (g' + wd p), without momentum, like torch.optim.SGD; m and v stay zero.
 *   muon   train/muon.h for the layers' matrices as the family stores them (GPT-2's c_attn is
 *          one of (3 n_embd, n_embd)), with m as momentum; adamw for embeddings, classifier, norms
 *          and biases (arXiv 2505.23725, MuLoCo: an inner Muon under DiLoCo's outer step). */
#ifndef RV_TRAIN_INNER_H
#define RV_TRAIN_INNER_H

#include "kernels/backend.h"
#include "train/model/model.h"

/* One device's slice of the block; all pointers are its memory. */
struct inner_slice {
	struct backend *be;
	float *theta;         /* (n) */
	void *m, *v;          /* (n_moments), of kind `moments` */
	enum moments moments; /* MOMENTS_INT8 only for optimizers that have moments8 */
	size_t n_moments, at; /* theta[0]'s moments are at `at`, a multiple of MOMENTS_BLOCK; 0 if whole_matrices */
	const float *grad;    /* (n) */
	float *scratch;       /* (scratch_floats) */
	size_t first;         /* index of theta[0] in the block */
	size_t n;
	const struct decay_span *spans; /* ascending, covering [0, n) */
	int n_spans;
	const struct model_layout *layout; /* layout of the whole block, equal to the slice if whole_matrices */
};

struct inner_params {
	struct adamw_params adamw; /* lr, weight_decay and grad_scale apply to all optimizers */
	float muon_momentum;
};

struct inner_optimizer {
	const char *name;
	bool whole_matrices; /* needs the whole block as slice, on every device of a replica */
	bool has_moments8;   /* can keep its moments in 8 bits */
	/* Returns the floats of backend memory that a step needs beside its vectors. NULL: none. */
	size_t (*scratch_floats)(const struct model_layout *l);
	/* Returns the floats of the largest matrix of a step's products. NULL: none. */
	size_t (*operand_floats)(const struct model_layout *l);
	void (*step)(const struct inner_slice *s, const struct inner_params *p);
};

#define INNER_OPTIMIZER(name, facts) extern const struct inner_optimizer inner_##name;
#include "base/inner_optimizers.def"
#undef INNER_OPTIMIZER
extern const struct inner_optimizer *const inner_registry[]; /* by enum inner_choice; NULL-terminated */

/* Returns inner_optimizer.scratch_floats, or 0. */
size_t inner_scratch_floats(const struct inner_optimizer *o, const struct model_layout *l);
/* Returns inner_optimizer.operand_floats, or 0. */
size_t inner_operand_floats(const struct inner_optimizer *o, const struct model_layout *l);

#endif
