/* method_diloco.c: k replicas, H inner steps each, one averaged outer gradient, one outer step (arXiv 2311.08105, algorithm
 * 1): the run that workers do over the network, without the network. With fragments it is Streaming DiLoCo (2501.18512).
 *
 * With outer sgd and outer-lr 1, or outer average, this is FedAvg (arXiv 1602.05629); with outer adam, yogi, adagrad
 * FedOpt (2003.00295); one worker with sgd is Lookahead (1907.08610), with nesterov SNOO (2510.15830). */
#include "lab/averaging.h"
#include "lab/synchronous.h"

const struct lab_method lab_method_diloco = {
	.name = "diloco",
	.averages = true,
	.n_replicas = averaging_replicas,
	.round = synchronous_round,
	.theta = averaging_theta,
	.state_hash = averaging_state_hash,
	.payload_bytes = averaging_payload_bytes,
};
