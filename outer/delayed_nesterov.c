/* delayed_nesterov.c: Delayed Nesterov (Liu et al., Asynchronous Local-SGD, arXiv 2401.09135,
 * algorithm 3 with c = 0): momentum moves once in N rounds, by the mean of their outer gradients; a
 * round between moves theta by an N-th of its own. With s the sum since the last such round:
 *     s <- s + d
 *     N-th round:  m <- mu m + s / N;  theta <- theta - lr (d / N + mu m);  s <- 0
 *     else:        theta <- theta - lr d / N
 * N = 1 is Nesterov, to the bit. Made for outer gradients that are stale, which momentum would
 * amplify.
 *
 * state[0] is m, state[1] is s. The number of rounds in s follows from `turn`. */
#include "outer/elementwise.h"
#include "outer/optimizer.h"

RV_ELEMENTWISE_BODY delayed_body(float *restrict theta, float *restrict m, float *restrict sum,
								 const float *restrict delta, size_t n, const struct outer_params *p) {
	const float every = (float)p->delay, lr = p->lr, mu = p->momentum;
	if ((p->turn + 1) % (uint64_t)p->delay != 0) {
		for (size_t i = 0; i < n; i++) {
			sum[i] = sum[i] + delta[i];
			theta[i] = theta[i] - lr * (delta[i] / every);
		}
		return;
	}
	for (size_t i = 0; i < n; i++) {
		m[i] = mu * m[i] + (sum[i] + delta[i]) / every;
		theta[i] = theta[i] - lr * (delta[i] / every + mu * m[i]);
		sum[i] = 0;
	}
}

RV_ELEMENTWISE(delayed,
			   (float *theta, float *m, float *sum, const float *delta, size_t n, const struct outer_params *p),
			   (theta, m, sum, delta, n, p))

static void delayed_step(float *theta, float *const *state, const float *delta, size_t n,
						 const struct outer_params *p) {
	delayed(theta, state[0], state[1], delta, n, p);
}

const struct outer_optimizer outer_delayed_nesterov = {.name = "delayed_nesterov", .n_states = 2, .step = delayed_step};
