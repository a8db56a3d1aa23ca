/* adagrad.c: FedAdagrad (arXiv 2003.00295, algorithm 2): v <- v + d^2. */
#include "outer/fedopt.h"

RV_ELEMENTWISE_BODY adagrad_second_moment(vec *v, const vec *d2, float beta2) {
	(void)beta2;
	*v = *v + *d2;
}

RV_FEDOPT(adagrad)
