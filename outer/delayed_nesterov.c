/* delayed_nesterov.c: Delayed Nesterov (Liu et al., Asynchronous Local-SGD, arXiv 2401.09135, algorithm 3 with c = 0):
 * momentum moves once in N rounds, by the mean of their outer gradients; a round between moves theta by an N-th of its
 * own. With s the sum since the last such round:
 *     s <- s + d
 *     N-th round:  m <- mu m + s / N;  theta <- theta - lr (d / N + mu m);  s <- 0
 *     else:        theta <- theta - lr d / N
 * N = 1 is Nesterov, to the bit. Made for outer gradients that are stale, which momentum would amplify.
 *
 * state[0] is m, state[1] is s, state[2] how many rounds are in it: of each parameter, for with fragments not all of
 * them take part in every round. */
#include "outer/elementwise.h"
#include "outer/optimizer.h"

#include <stdbool.h>

RV_ELEMENTWISE_BODY delayed_body(float *theta, float *const *state, const float *delta, size_t n,
								 const struct outer_params *p) {
	float *m = state[0], *sum = state[1], *count = state[2];
	const float every = (float)p->delay;
	for (size_t i = 0; i < n; i++) {
		const float share = delta[i] / every;
		const bool due = count[i] + 1 >= every;
		sum[i] = sum[i] + delta[i];
		count[i] = count[i] + 1;
		if (!due) {
			theta[i] = theta[i] - p->lr * share;
			continue;
		}
		m[i] = p->momentum * m[i] + sum[i] / every;
		theta[i] = theta[i] - p->lr * (share + p->momentum * m[i]);
		sum[i] = count[i] = 0;
	}
}

RV_ELEMENTWISE(delayed, (float *theta, float *const *state, const float *delta, size_t n, const struct outer_params *p),
			   (theta, state, delta, n, p))

const struct outer_optimizer outer_delayed_nesterov = {.name = "delayed_nesterov", .n_states = 3, .step = delayed};
