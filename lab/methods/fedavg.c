/* fedavg.c: FedAvg (McMahan et al., arXiv 1602.05629, algorithm 1), with all clients in every
 * round: each takes H steps from theta, and theta becomes the mean of their parameters, by tokens
 * with weight-by-tokens:
 *     theta <- sum_i w_i theta_i / sum_i w_i,  which is  theta - mean(Delta_i)
 * With inner sgd it is local SGD. Real workers do it with outer = average. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

const struct lab_method lab_method_fedavg = {
	.name = "fedavg", .prescribes_outer = true, .prescribed_outer = OUTER_average, SYNCHRONOUS_METHOD};
