/* adam.c: FedAdam (arXiv 2003.00295, algorithm 2): v <- beta2 v + (1 - beta2) d^2. */
#include "outer/fedopt.h"

static inline float adam_second_moment(float v, float d2, float beta2) {
	return beta2 * v + (1 - beta2) * d2;
}

RV_FEDOPT(adam)
