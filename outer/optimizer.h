/* optimizer.h: outer optimizers: how the averaged outer gradient moves the shared weights. One file each, found by
 * name.
 *
 * Sign convention: the outer gradient is Delta = theta_old - theta_new, so it points uphill like a gradient, and
 * theta <- theta - lr * Delta is plain averaging at lr = 1.
 */
#ifndef RV_OUTER_OPTIMIZER_H
#define RV_OUTER_OPTIMIZER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct outer_params {
	float lr, momentum;
};

struct outer_optimizer {
	const char *name;
	int n_states; /* fp32 vectors of theta's size it keeps (Nesterov: 1) */
	/* theta (n), state (n_states vectors of n, each contiguous: state[k]), delta (n): one outer step over a slice, in
	 * place. Elementwise, correctly rounded IEEE-754 operations, no contraction: any slicing, any machine, the same
	 * bits. */
	void (*step)(float *theta, float *const *state, const float *delta, size_t n, const struct outer_params *p);
};

extern const struct outer_optimizer
	outer_nesterov;                            /* b <- mu b + d;  theta <- theta - lr (d + mu b)  (arXiv 2311.08105) */
extern const struct outer_optimizer outer_sgd; /* theta <- theta - lr d */
extern const struct outer_optimizer outer_average; /* theta <- theta - d: FedAvg / local SGD, lr ignored */
extern const struct outer_optimizer *const outer_registry[];

enum rv_err outer_find(const char *name, const struct outer_optimizer **out, struct rv_errtext *et);

#endif
