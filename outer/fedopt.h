/* fedopt.h: the step that FedOpt's adaptive outer optimizers share (Reddi et al., Adaptive
 * Federated Optimization, arXiv 2003.00295, algorithm 2); they differ in how the second moment v
 * follows the square of the outer gradient. Private to outer/.
 *
 * state[0] is m, from 0; state[1] is v, from tau^2, the least that the paper allows. */
#ifndef RV_OUTER_FEDOPT_H
#define RV_OUTER_FEDOPT_H

#include "outer/elementwise.h"
#include "outer/optimizer.h"

#include <math.h>

static inline void fedopt_start(float *const *state, size_t n, const struct outer_params *p) {
	for (size_t i = 0; i < n; i++)
		state[1][i] = p->eps * p->eps;
}

/* Defines outer_NAME from NAME_second_moment(v, d^2, beta2), which returns the next v. */
#define RV_FEDOPT(name)                                                                                                \
	RV_ELEMENTWISE_BODY name##_lanes_body(float *restrict theta, float *restrict m, float *restrict v,                 \
										  const float *restrict delta, size_t n, const struct outer_params *p) {       \
		const float lr = p->lr, beta1 = p->momentum, beta2 = p->beta2, tau = p->eps;                                   \
		for (size_t i = 0; i < n; i++) {                                                                               \
			m[i] = beta1 * m[i] + (1 - beta1) * delta[i];                                                              \
			v[i] = name##_second_moment(v[i], delta[i] * delta[i], beta2);                                             \
			theta[i] = theta[i] - lr * (m[i] / (sqrtf(v[i]) + tau));                                                   \
		}                                                                                                              \
	}                                                                                                                  \
	RV_ELEMENTWISE(name##_lanes,                                                                                       \
				   (float *theta, float *m, float *v, const float *delta, size_t n, const struct outer_params *p),     \
				   (theta, m, v, delta, n, p))                                                                         \
	static void name##_step(float *theta, float *const *state, const float *delta, size_t n,                           \
							const struct outer_params *p) {                                                            \
		name##_lanes(theta, state[0], state[1], delta, n, p);                                                          \
	}                                                                                                                  \
	const struct outer_optimizer outer_##name = {#name, 2, fedopt_start, name##_step};

#endif
