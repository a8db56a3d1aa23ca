/* fedopt.h: the step that FedOpt's adaptive outer optimizers share (Reddi et al., Adaptive Federated Optimization,
 * arXiv 2003.00295, algorithm 2); they differ in how the second moment v follows the square of the outer gradient.
 * Private to outer/.
 *
 * state[0] is m, from 0; state[1] is v, from tau^2, the least that the paper allows. */
#ifndef RV_OUTER_FEDOPT_H
#define RV_OUTER_FEDOPT_H

#include "outer/elementwise.h"
#include "outer/optimizer.h"

#include <math.h>
#include <string.h>

/* v <- what the optimizer makes of it and of d2 = d^2. Pointers: vectors as arguments have no stable ABI. */
typedef void second_moment_fn(vec *v, const vec *d2, float beta2);

RV_ELEMENTWISE_BODY fedopt_lanes(float *theta, float *m, float *v, const float *delta, const struct outer_params *p,
								 second_moment_fn *second_moment) {
	const vec d = VEC_AT(delta), d2 = d * d;
	const vec momentum = p->momentum * VEC_AT(m) + (1 - p->momentum) * d;
	vec second = VEC_AT(v), root;
	second_moment(&second, &d2, p->beta2);
	for (int i = 0; i < VEC_LANES; i++)
		root[i] = sqrtf(second[i]);
	VEC_AT(m) = momentum;
	VEC_AT(v) = second;
	VEC_AT(theta) = VEC_AT(theta) - p->lr * (momentum / (root + p->eps));
}

RV_ELEMENTWISE_BODY fedopt_body(float *theta, float *const *state, const float *delta, size_t n,
								const struct outer_params *p, second_moment_fn *second_moment) {
	size_t i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		fedopt_lanes(theta + i, state[0] + i, state[1] + i, delta + i, p, second_moment);
	if (i == n)
		return;
	float tail[4][VEC_LANES] = {0};
	float *const whole[3] = {theta + i, state[0] + i, state[1] + i};
	const size_t bytes = (n - i) * sizeof(float);
	memcpy(tail[3], delta + i, bytes);
	for (int k = 0; k < 3; k++)
		memcpy(tail[k], whole[k], bytes);
	fedopt_lanes(tail[0], tail[1], tail[2], tail[3], p, second_moment);
	for (int k = 0; k < 3; k++)
		memcpy(whole[k], tail[k], bytes);
}

static inline void fedopt_start(float *const *state, size_t n, const struct outer_params *p) {
	for (size_t i = 0; i < n; i++)
		state[1][i] = p->eps * p->eps;
}

/* Defines outer_NAME from the static second_moment_fn NAME_second_moment. */
#define RV_FEDOPT(name)                                                                                                \
	RV_ELEMENTWISE_BODY name##_body(float *theta, float *const *state, const float *delta, size_t n,                   \
									const struct outer_params *p) {                                                    \
		fedopt_body(theta, state, delta, n, p, name##_second_moment);                                                  \
	}                                                                                                                  \
	RV_ELEMENTWISE(name,                                                                                               \
				   (float *theta, float *const *state, const float *delta, size_t n, const struct outer_params *p),    \
				   (theta, state, delta, n, p))                                                                        \
	const struct outer_optimizer outer_##name = {#name, 2, fedopt_start, name};

#endif
