/* stands_out.h: which mean of a round stands out beside a worker's own contribution, so that
 * auditors look there (coordinator/core/audits_named.c).
 *
 * A chunk's ratio is the root mean square of its mean over that of the own contribution, or over
 * the median of that over all chunks where the own one is smaller: rows of embeddings that this
 * worker has not read are zero in it, and not in the mean. An honest mean has a ratio
 * between 1 / sqrt(n), where n contributions have nothing in common, and 1, where they are alike;
 * a merge that limits norms gives no more than its `clip`. So the chunk with the largest ratio
 * stands out if that is above both of
 * - STANDS_OUT_LEAST;
 * - STANDS_OUT_TIMES the median of all ratios: one that took a step where others took 500 has large
 *   ratios everywhere.
 * This decides nothing but where somebody looks. */
#ifndef RV_OUTER_STANDS_OUT_H
#define RV_OUTER_STANDS_OUT_H

#include <stdint.h>

#define STANDS_OUT_LEAST 2.0
#define STANDS_OUT_TIMES 4.0

/* Returns the number of that chunk; -1: none stands out. own, mean (n): mean squares of the chunks
 * of the contribution, and of their means; a negative one is not known. work (n): arbitrary. */
int64_t stands_out(const double *own, const double *mean, uint32_t n, double *work);

#endif
