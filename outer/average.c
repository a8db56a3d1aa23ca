/* average.c: theta <- theta - d: the mean of the workers' parameters (FedAvg, arXiv 1602.05629;
 * local SGD). */
#include "outer/elementwise.h"
#include "outer/optimizer.h"

RV_ELEMENTWISE_BODY average_body(float *theta, const float *delta, size_t n) {
	for (size_t i = 0; i < n; i++)
		theta[i] = theta[i] - delta[i];
}

RV_ELEMENTWISE(average, (float *theta, const float *delta, size_t n), (theta, delta, n))

static void average_step(float *theta, float *const *state, const float *delta, size_t n,
						 const struct outer_params *p) {
	(void)state;
	(void)p;
	average(theta, delta, n);
}

const struct outer_optimizer outer_average = {.name = "average", .n_states = 0, .step = average_step};
