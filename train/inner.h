/* inner.h: inner optimizers: how a replica's gradient moves its weights. One file each, found by name.
 *
 * All keep what they remember in the two vectors m and v that a replica has (zero at the start, part of its saved
 * state); g' = grad_scale * g is the gradient after clipping, wd the decay where a span has one, else 0.
 *
 * adamw  Loshchilov & Hutter 2019, algorithm 2: adamw_params of kernels/backend.h.
 * sgd    p <- p - lr (g' + wd p): no momentum; m and v stay zero. As torch.optim.SGD without momentum.
 * muon   train/muon.h for the matrices of the layers, with m as their momentum; adamw for all else: embeddings,
 *        classifier, norms and biases (arXiv 2505.23725, MuLoCo: an inner Muon under DiLoCo's outer step). The matrices
 *        are those that the model's family stores: GPT-2's c_attn is one of (3 n_embd, n_embd). */
#ifndef RV_TRAIN_INNER_H
#define RV_TRAIN_INNER_H

#include "kernels/backend.h"
#include "train/model/model.h"

/* One device's slice of the block: all pointers are its memory. */
struct inner_slice {
	struct backend *be;
	float *theta, *m, *v; /* (n) */
	const float *grad;    /* (n) */
	float *scratch;       /* what scratch_floats says */
	size_t n;
	const struct decay_span *spans; /* ascending, covering [0, n) */
	int n_spans;
	const struct model_layout *layout; /* of the whole block: the slice, where whole_matrices */
};

struct inner_params {
	struct adamw_params adamw; /* lr, weight_decay and grad_scale are everybody's */
	float muon_momentum;
};

struct inner_optimizer {
	const char *name;
	bool whole_matrices; /* the slice must be the whole block, on every device of a replica */
	/* Of backend memory that a step needs beside its vectors; NULL: none. */
	size_t (*scratch_floats)(const struct model_layout *l);
	/* Floats of the largest matrix that a step multiplies (backend_ops.product); NULL: it multiplies none. */
	size_t (*operand_floats)(const struct model_layout *l);
	void (*step)(const struct inner_slice *s, const struct inner_params *p);
};

#define INNER_OPTIMIZER(name) extern const struct inner_optimizer inner_##name;
#include "base/inner_optimizers.def"
#undef INNER_OPTIMIZER
extern const struct inner_optimizer *const inner_registry[]; /* NULL-terminated */

/* RV_E_NOTFOUND: the text lists the names there are. */
enum rv_err inner_find(const char *name, const struct inner_optimizer **out, struct rv_errtext *et);
/* inner_optimizer.scratch_floats, or 0. */
size_t inner_scratch_floats(const struct inner_optimizer *o, const struct model_layout *l);
/* inner_optimizer.operand_floats, or 0. */
size_t inner_operand_floats(const struct inner_optimizer *o, const struct model_layout *l);

#endif
