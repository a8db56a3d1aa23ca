/* stands_out.h: which mean of a round stands out beside a worker's own contribution, so that
 * auditors look there (coordinator/core/audits_named.c).
 *
 * A chunk's *ratio* is the root mean square of its mean over that of the own contribution, or over
 * the median of that over all chunks where the own one is smaller: rows of embeddings that this
 * worker has not read are zero in it, and not in the mean. An honest mean has a ratio
 * between 1 / sqrt(n), where n contributions have nothing in common, and 1, where they are alike;
 * a merge that limits norms gives no more than its `clip`. So the chunk with the largest ratio
 * stands out if that is above both of
 * - STANDS_OUT_LEAST;
 * - STANDS_OUT_TIMES the median of all ratios: one that took a step where others took 500 has large
 *   ratios everywhere.
 *
 * If none does, the *cosine* between the mean and the own contribution counts, which is a part
 * of it: the chunk with the lowest one stands out if that is below -STANDS_OUT_OPPOSED, while more
 * than half of all are above 0. Chunks of the own contribution whose mean square is below
 * STANDS_OUT_SMALL times the median do not count, as where a worker has read next to nothing.
 *
 * This decides nothing but where somebody looks. */
#ifndef RV_OUTER_STANDS_OUT_H
#define RV_OUTER_STANDS_OUT_H

#include <stdbool.h>
#include <stdint.h>

#define STANDS_OUT_LEAST   2.0
#define STANDS_OUT_TIMES   4.0
#define STANDS_OUT_OPPOSED 0.25
#define STANDS_OUT_SMALL   0.01

/* Means over the values of a chunk. */
struct stands_out_chunk {
	double own, mean; /* squares of the contribution, of the mean */
	double both;      /* products of both */
	bool known;       /* the mean is, and another one made it */
};

/* Returns the number of that chunk; -1: none stands out. work (n): arbitrary. */
int64_t stands_out(const struct stands_out_chunk *chunks, uint32_t n, double *work);

#endif
