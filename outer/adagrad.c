/* adagrad.c: FedAdagrad (arXiv 2003.00295, algorithm 2): v <- v + d^2. */
#include "outer/fedopt.h"

static inline float adagrad_second_moment(float v, float d2, float beta2) {
	(void)beta2;
	return v + d2;
}

RV_FEDOPT(adagrad)
