/* weights.h: how much each participant counts in a round's mean.
 *
 * The coordinator announces these weights, and the lab's in-process run takes the same: one
 * function, so that both end in the same bits. */
#ifndef RV_BASE_WEIGHTS_H
#define RV_BASE_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RV_WEIGHTS_MAX = 1024,
	RV_WEIGHT_SUM_MAX = (1 << 24) - 1 /* an integer up to it is exact in fp32, where means are computed */
};

/* With at least RV_WEIGHT_CAP_MIN participants, each counts for at most RV_WEIGHT_CAP times the
 * median of their tokens: a worker's token count is only its own claim. With two, neither is the
 * outlier. */
enum { RV_WEIGHT_CAP_MIN = 3, RV_WEIGHT_CAP = 2 };

/* Writes `weights` (n), all >= 1, with a sum of at most RV_WEIGHT_SUM_MAX; 0 <= n <=
 * RV_WEIGHTS_MAX. By `tokens` (n): from RV_WEIGHT_CAP_MIN participants on, each is limited to
 * RV_WEIGHT_CAP times the median (at place (n - 1) / 2, ascending); each is divided by their
 * greatest common divisor (equal ones weigh 1); then all are halved, rounding down but to at least
 * 1, until the sum fits. Otherwise every weight is 1. */
void rv_weights(const uint64_t *tokens, int n, bool by_tokens, uint32_t *weights);

/* Lowers each of `weights` (n, all >= 1, 0 <= n <= RV_WEIGHTS_MAX) to at most RV_WEIGHT_CAP times
 * the median of `of` (n_of, likewise; may be `weights`), at place (n_of - 1) / 2, ascending, if
 * those are RV_WEIGHT_CAP_MIN or more. */
void rv_weights_cap(uint32_t *weights, int n, const uint32_t *of, int n_of);

#endif
