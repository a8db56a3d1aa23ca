/* yogi.c: FedYogi (arXiv 2003.00295, algorithm 2): v <- v - (1 - beta2) d^2 sign(v - d^2), with
 * sign(0) = 0: v moves towards d^2 by a step that does not depend on how far away it is. */
#include "outer/fedopt.h"

static inline float yogi_second_moment(float v, float d2, float beta2) {
	const float sign = (float)((v > d2) - (v < d2));
	return v - (1 - beta2) * d2 * sign;
}

RV_FEDOPT(yogi)
