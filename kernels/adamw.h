/* adamw.h: AdamW's constants, folded once for all elements, with which the processor's kernels and
 * a GPU's do the same operations in the same order:
 *
 *   m = fma(beta1, m, m_new * g);   v = fma(beta2, v, v_new * (g * g))
 *   p = fma(-step_size, m / fma(sqrt(v), v_hat, eps), keep * p)
 *
 * So both have the same bits where multiply-adds are fused (every instruction set but "portable"):
 * training goes on in the host's memory as it would on the card. */
#ifndef RV_KERNELS_ADAMW_H
#define RV_KERNELS_ADAMW_H

#include "kernels/backend.h"

#include <math.h>

struct adamw_consts {
	float beta1, beta2;
	float m_new, v_new;     /* (1 - beta1) * grad_scale, (1 - beta2) * grad_scale^2 */
	float step_size, v_hat; /* lr / (1 - beta1^step), 1 / sqrt(1 - beta2^step) */
	float eps, keep;        /* keep = 1 - lr * weight_decay (1 where there is no decay) */
};

static inline struct adamw_consts adamw_consts_of(const struct adamw_params *a, double weight_decay) {
	const double beta1 = (double)a->beta1, beta2 = (double)a->beta2, lr = (double)a->lr;
	const double scale = (double)a->grad_scale, step = (double)a->step;
	struct adamw_consts c; /* C++ reads this too */
	c.beta1 = a->beta1;
	c.beta2 = a->beta2;
	c.m_new = (float)((1 - beta1) * scale);
	c.v_new = (float)((1 - beta2) * scale * scale);
	c.step_size = (float)(lr / (1 - pow(beta1, step)));
	c.v_hat = (float)(1 / sqrt(1 - pow(beta2, step)));
	c.eps = a->eps;
	c.keep = (float)(1 - lr * weight_decay);
	return c;
}

#endif
