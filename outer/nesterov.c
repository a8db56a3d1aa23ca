/* nesterov.c: the outer optimizer of DiLoCo (arXiv 2311.08105, algorithm 1; the form of
 * torch.optim.SGD with nesterov=True, dampening 0): b <- mu b + d;
 * theta <- theta - lr (d + mu b). */
#include "outer/elementwise.h"
#include "outer/optimizer.h"

RV_ELEMENTWISE_BODY nesterov_body(float *theta, float *b, const float *delta, size_t n, float lr, float mu) {
	for (size_t i = 0; i < n; i++) {
		b[i] = mu * b[i] + delta[i];
		theta[i] = theta[i] - lr * (delta[i] + mu * b[i]);
	}
}

RV_ELEMENTWISE(nesterov, (float *theta, float *b, const float *delta, size_t n, float lr, float mu),
			   (theta, b, delta, n, lr, mu))

static void nesterov_step(float *theta, float *const *state, const float *delta, size_t n,
						  const struct outer_params *p) {
	nesterov(theta, state[0], delta, n, p->lr, p->momentum);
}

const struct outer_optimizer outer_nesterov = {.name = "nesterov", .n_states = 1, .step = nesterov_step};
