/* phase_backend.h: a backend that measures another one: every operation of a training step of GPT-2
 * is passed on and its time and work are added to a phase. The ops table is the seam, so the
 * shipped code is measured, and other programs do not contain this. */
#ifndef RV_BENCH_PHASE_BACKEND_H
#define RV_BENCH_PHASE_BACKEND_H

#include "kernels/backend.h"

#include <time.h>

/* The limit of a phase, and so the unit of its work. */
enum phase_bound { PHASE_PRODUCTS, PHASE_ATTENTION, PHASE_MEMORY }; /* flop, flop of the causal half, bytes */

#define PHASES(X)                                                                                                      \
	X(EMBEDDING, "embedding, both ways", PHASE_MEMORY)                                                                 \
	X(NORM_FORWARD, "residual + norm forward", PHASE_MEMORY)                                                           \
	X(NORM_BACKWARD, "norm backward", PHASE_MEMORY)                                                                    \
	X(QKV_FORWARD, "qkv forward", PHASE_PRODUCTS)                                                                      \
	X(QKV_DX, "qkv dX", PHASE_PRODUCTS)                                                                                \
	X(QKV_DW, "qkv dW", PHASE_PRODUCTS)                                                                                \
	X(ATTENTION_FORWARD, "attention forward", PHASE_ATTENTION)                                                         \
	X(ATTENTION_BACKWARD, "attention backward", PHASE_ATTENTION)                                                       \
	X(OUT_FORWARD, "attention projection forward", PHASE_PRODUCTS)                                                     \
	X(OUT_DX, "attention projection dX", PHASE_PRODUCTS)                                                               \
	X(OUT_DW, "attention projection dW", PHASE_PRODUCTS)                                                               \
	X(FC_FORWARD, "fc + GELU forward", PHASE_PRODUCTS)                                                                 \
	X(FC_DX, "fc dX", PHASE_PRODUCTS)                                                                                  \
	X(FC_DW, "fc dW", PHASE_PRODUCTS)                                                                                  \
	X(PROJ_FORWARD, "MLP projection forward", PHASE_PRODUCTS)                                                          \
	X(PROJ_DX, "MLP projection dX + GELU'", PHASE_PRODUCTS)                                                            \
	X(PROJ_DW, "MLP projection dW", PHASE_PRODUCTS)                                                                    \
	X(CLASSIFIER, "classifier, both ways", PHASE_PRODUCTS)                                                             \
	X(ZERO, "clearing gradients", PHASE_MEMORY)                                                                        \
	X(CLIP, "norm of the gradient", PHASE_MEMORY)                                                                      \
	X(ADAMW, "AdamW + clipping", PHASE_MEMORY)

enum phase {
#define PHASE_ENUM_(name, text, bound) PHASE_##name,
	PHASES(PHASE_ENUM_)
#undef PHASE_ENUM_
		N_PHASES
};

const char *phase_name(enum phase p);
enum phase_bound phase_bound(enum phase p);

struct phase_sum {
	double seconds, work;
};

/* Makes a backend whose operations are those of `inner` (borrowed), each measured by `clock`
 * until it is done. NULL: no memory. Closed with backend_close; `inner` stays open. */
struct backend *phase_backend_new(struct backend *inner, clockid_t clock);
/* Returns (N_PHASES) sums since the last reset. Borrowed. */
const struct phase_sum *phase_backend_sums(const struct backend *be);
void phase_backend_reset(struct backend *be);

#endif
