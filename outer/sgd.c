/* sgd.c: theta <- theta - lr d. With one worker this is Lookahead (arXiv 1907.08610). */
#include "outer/elementwise.h"
#include "outer/optimizer.h"

RV_ELEMENTWISE_BODY sgd_body(float *theta, const float *delta, size_t n, float lr) {
	for (size_t i = 0; i < n; i++)
		theta[i] = theta[i] - lr * delta[i];
}

RV_ELEMENTWISE(sgd, (float *theta, const float *delta, size_t n, float lr), (theta, delta, n, lr))

static void sgd_step(float *theta, float *const *state, const float *delta, size_t n, const struct outer_params *p) {
	(void)state;
	sgd(theta, delta, n, p->lr);
}

const struct outer_optimizer outer_sgd = {.name = "sgd", .n_states = 0, .step = sgd_step};
