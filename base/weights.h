/* weights.h: how much each participant counts in a round's mean.
 *
 * The coordinator announces these weights, and the lab's in-process run takes the same: one function, so that both end
 * in the same bits. */
#ifndef RV_BASE_WEIGHTS_H
#define RV_BASE_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum { RV_WEIGHT_SUM_MAX = (1 << 24) - 1 }; /* an integer up to it is exact in fp32, where means are computed */

/* weights (n), all >= 1, their sum <= RV_WEIGHT_SUM_MAX. By tokens (n): each share divided by their greatest common
 * divisor (equal shares weigh 1), then all shares halved, rounding down but to no less than 1, until the sum fits.
 * Otherwise every weight is 1. 0 <= n <= RV_WEIGHT_SUM_MAX. */
void rv_weights(const uint64_t *tokens, int n, bool by_tokens, uint32_t *weights);

#endif
