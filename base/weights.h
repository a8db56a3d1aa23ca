/* weights.h: how much each participant counts in a round's mean.
 *
 * The coordinator announces these weights, and the lab's in-process run takes the same: one function, so that both end
 * in the same bits. */
#ifndef RV_BASE_WEIGHTS_H
#define RV_BASE_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RV_WEIGHTS_MAX = 1024,
	RV_WEIGHT_SUM_MAX = (1 << 24) - 1 /* an integer up to it is exact in fp32, where means are computed */
};

/* With as many participants as that, nobody counts for more than so many times the median of their tokens: what a
 * worker says that it trained on is its own word. Of two nobody's word is the odd one. */
enum { RV_WEIGHT_CAP_MIN = 3, RV_WEIGHT_CAP = 2 };

/* weights (n), all >= 1, their sum <= RV_WEIGHT_SUM_MAX. By tokens (n): from RV_WEIGHT_CAP_MIN participants on
 * what is above RV_WEIGHT_CAP times the median (at place (n - 1) / 2, ascending) counts as that; each share divided by their greatest common
 * divisor (equal shares weigh 1), then all shares halved, rounding down but to no less than 1, until the sum fits.
 * Otherwise every weight is 1. 0 <= n <= RV_WEIGHTS_MAX. */
void rv_weights(const uint64_t *tokens, int n, bool by_tokens, uint32_t *weights);

#endif
