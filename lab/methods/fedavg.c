/* fedavg.c: FedAvg (McMahan et al., arXiv 1602.05629, algorithm 1), with all clients in every
 * round: each takes H steps from theta, and theta becomes the mean of their parameters, by tokens
 * with weight-by-tokens:
 *     theta <- sum_i w_i theta_i / sum_i w_i,  which is  theta - mean(Delta_i)
 * With inner sgd it is local SGD. Real workers do it with outer = average. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "lab/methods/synchronous.h"

static void configure(struct lab_config *c) {
	preset_outer(c, OUTER_average);
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	return preset_check_outer("fedavg", c, OUTER_average, et);
}

const struct lab_method lab_method_fedavg = {
	.name = "fedavg", .configure = configure, .check = check, SYNCHRONOUS_METHOD};
