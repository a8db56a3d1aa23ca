/* adopt.h: what a replica does with a committed outer step. */
#ifndef RV_TRAIN_ADOPT_H
#define RV_TRAIN_ADOPT_H

#include "outer/global.h"
#include "train/replica.h"

/* After global_apply() of `round`: of what that round exchanged, theta_local <- mix theta_local + (1 - mix) theta
 * (Streaming DiLoCo, arXiv 2501.18512, equation 4). mix 0: theta_local is theta there, to the bit; mix 1: it stays as
 * it is. What the round did not exchange is not touched. Uses g->scratch. */
void adopt_round(struct replica *r, struct global_state *g, uint64_t round, float mix);

#endif
