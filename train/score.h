/* score.h: what a contribution is worth: by how much a step along it lowers the loss on given
 * sequences (after Gauntlet, arXiv 2505.21684). Zeros, noise, a stale or a flipped contribution
 * score as what they are, on any hardware, without the inner state of their author.
 *
 * The loss on the sequences that were leased to the author falls most by honest work; on others it
 * falls by work on any text of the run. */
#ifndef RV_TRAIN_SCORE_H
#define RV_TRAIN_SCORE_H

#include "train/replica.h"

/* Mean losses over the same sequences, nats per token. */
struct score {
	double before; /* at the weights */
	double after;  /* `share` of the way along the contribution */
};

/* The sequences of so many steps: from stream number `next` of `reading` on. */
struct score_text {
	const struct reading *reading;
	uint64_t next;
	int steps;
};

/* Measures theta (n) and theta - share * delta (n). The replica's weights, step and cursor are
 * unspecified afterwards; its moments are not touched. `scratch`: 2 n floats. RV_E_RANGE: a loss is
 * not finite; RV_E_BUSY: the reading has fewer sequences. */
enum rv_err score_contribution(struct replica *r, const float *theta, const float *delta, float share,
							   const struct score_text *text, float *scratch, struct score *out, struct rv_errtext *et);

#endif
