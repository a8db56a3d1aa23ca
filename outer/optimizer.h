/* optimizer.h: outer optimizers: how the averaged outer gradient moves the shared weights. One file
 * each, found by name.
 *
 * Sign convention: the outer gradient is Delta = theta_old - theta_new, so it points uphill like a
 * gradient, and theta <- theta - lr * Delta is plain averaging at lr = 1. */
#ifndef RV_OUTER_OPTIMIZER_H
#define RV_OUTER_OPTIMIZER_H

#include "base/err.h"
#include "base/run_config.h"

#include <stddef.h>
#include <stdint.h>

struct outer_params {
	float lr, momentum;
	float beta2, eps; /* adam, yogi, adagrad; momentum is their beta1, eps the paper's tau */
	int delay;        /* delayed_nesterov: N, at least 1 */
	uint64_t turn;    /* delayed_nesterov: outer steps of these values before this one */
};

struct outer_optimizer {
	const char *name;
	int n_states; /* fp32 vectors of theta's size that it keeps (nesterov: 1) */
	/* Fills the states (n each, zeros so far) as they are before the first step, all values of one
	 * alike; NULL: they stay zero. */
	void (*start)(float *const *state, size_t n, const struct outer_params *p);
	/* Makes one outer step over a slice, in place: theta (n), state (n_states vectors of n, each
	 * contiguous: state[k]), delta (n). Elementwise, correctly rounded IEEE-754 operations, no
	 * contraction: any slicing, any machine, the same bits. */
	void (*step)(float *theta, float *const *state, const float *delta, size_t n, const struct outer_params *p);
};

/* nesterov  b <- mu b + d;  theta <- theta - lr (d + mu b)  (arXiv 2311.08105)
 * sgd       theta <- theta - lr d
 * average   theta <- theta - d: FedAvg / local SGD, lr ignored
 * adam, yogi, adagrad (FedOpt: Reddi et al., Adaptive Federated Optimization, arXiv 2003.00295,
 *           algorithm 2; no bias correction; v starts at tau^2, m at 0):
 *           m <- beta1 m + (1 - beta1) d
 *           v <- beta2 v + (1 - beta2) d^2                       adam
 *           v <- v - (1 - beta2) d^2 sign(v - d^2)               yogi
 *           v <- v + d^2                                         adagrad
 *           theta <- theta - lr (m / (sqrt(v) + tau))
 * delayed_nesterov  (arXiv 2401.09135)  as nesterov on the mean of N rounds, whose gradients move
 *           theta meanwhile:
 *           each round      theta <- theta - lr d / N
 *           the N-th also   m <- mu m + mean of N d;  theta <- theta - lr mu m */
#define OUTER_OPTIMIZER(name, facts, lr, momentum) extern const struct outer_optimizer outer_##name;
#include "base/outer_optimizers.def"
#undef OUTER_OPTIMIZER
/* The outer optimizers, by enum outer_choice; NULL-terminated. */
extern const struct outer_optimizer *const outer_registry[];

/* Returns the parameters that a run's configuration gives its outer optimizer; turn = 0. */
struct outer_params outer_params_of(const struct run_config *run);

#endif
